package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// chromium is one page of Debian's chromium, driven by its DevTools protocol: commands and
// their answers, and events, are JSON on a WebSocket.
type chromium struct {
	conn *websocket.Conn

	mu      sync.Mutex
	last    int
	waiting map[int]chan answerOfPage
	ended   error
	heard   func(method string, params json.RawMessage)
}

type answerOfPage struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// profile is a folder for a browser. Its processes may write there for a moment after the
// first of them was killed.
func profile(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.RemoveAll(dir)
		for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); err = os.RemoveAll(dir) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return dir
}

// startChromium opens an empty page. heard receives each event.
func startChromium(t testing.TB, heard func(method string, params json.RawMessage)) *chromium {
	t.Helper()
	dir := profile(t)
	jobstest.StartChromium(t, "--headless=new", "--remote-debugging-port=0", "--remote-allow-origins=*",
		"--user-data-dir="+dir, "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--no-default-browser-check", "--disable-component-update", "--disable-background-networking",
		"--disable-sync", "--mute-audio", "--hide-scrollbars", "--window-size=1280,900", "about:blank")
	address, err := pageAddress(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &chromium{waiting: map[int]chan answerOfPage{}, heard: heard}
	if c.conn, err = websocket.Dial(address, "", "http://127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	c.conn.MaxPayloadBytes = 64 << 20
	t.Cleanup(func() { c.conn.Close() })
	go c.read()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		if err := c.call(t.Context(), domain+".enable", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// pageAddress waits for the port, which chromium writes into its folder, and for the page.
func pageAddress(dir string) (string, error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		port, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		if err != nil {
			continue
		}
		number, _, _ := strings.Cut(string(port), "\n")
		answer, err := http.Get("http://127.0.0.1:" + number + "/json/list")
		if err != nil {
			continue
		}
		var pages []struct {
			Type    string `json:"type"`
			Address string `json:"webSocketDebuggerUrl"`
		}
		err = json.NewDecoder(answer.Body).Decode(&pages)
		answer.Body.Close()
		for _, p := range pages {
			if err == nil && p.Type == "page" {
				return p.Address, nil
			}
		}
	}
	return "", errors.New("chromium does not start")
}

// read hands over answers and events until the connection ends.
func (c *chromium) read() {
	for {
		var a answerOfPage
		err := websocket.JSON.Receive(c.conn, &a)
		c.mu.Lock()
		if err != nil {
			c.ended = fmt.Errorf("the browser is gone: %w", err)
			for _, w := range c.waiting {
				close(w)
			}
			c.mu.Unlock()
			return
		}
		w := c.waiting[a.ID]
		delete(c.waiting, a.ID)
		c.mu.Unlock()
		switch {
		case w != nil:
			w <- a
		case a.Method != "":
			c.heard(a.Method, a.Params)
		}
	}
}

// call sends a command and reads its result into result, which may be nil.
func (c *chromium) call(ctx context.Context, method string, params, result any) error {
	if params == nil {
		params = struct{}{}
	}
	w := make(chan answerOfPage, 1)
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return c.ended
	}
	c.last++
	id := c.last
	c.waiting[id] = w
	err := websocket.JSON.Send(c.conn, map[string]any{"id": id, "method": method, "params": params})
	c.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case a, open := <-w:
		switch {
		case !open:
			return c.ended
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// evaluate reads an expression's value, or that of its promise, into value.
func (c *chromium) evaluate(ctx context.Context, expression string, value any) error {
	var a struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	err := c.call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true,
		"awaitPromise": true, "userGesture": true}, &a)
	switch {
	case err != nil:
		return err
	case a.Exception != nil:
		return fmt.Errorf("%s %s", a.Exception.Text, a.Exception.Exception.Description)
	}
	return json.Unmarshal(a.Result.Value, value)
}

func (c *chromium) navigate(ctx context.Context, address string) error {
	var a struct {
		ErrorText string `json:"errorText"`
	}
	err := c.call(ctx, "Page.navigate", map[string]any{"url": address}, &a)
	if err == nil && a.ErrorText != "" {
		err = fmt.Errorf("%s: %s", address, a.ErrorText)
	}
	return err
}

// key presses a key that writes a sign.
func (c *chromium) key(ctx context.Context, sign string) error {
	for _, event := range []map[string]any{{"type": "keyDown", "key": sign, "text": sign},
		{"type": "keyUp", "key": sign}} {
		if err := c.call(ctx, "Input.dispatchKeyEvent", event, nil); err != nil {
			return err
		}
	}
	return nil
}
