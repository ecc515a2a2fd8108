package terminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/terminal"
)

func clock() time.Time { return noon }

// TestAForeignServerGetsNoTokenByARedirect and its answers are read within bounds.
func TestAForeignServerGetsNoTokenByARedirect(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved/api/v1/jobs/1":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/api/v1/jobs/1":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"detail":"There is nothing with this id."}`)
		default:
			_, _ = io.WriteString(w, `{"items":["`+strings.Repeat("x", 9<<20)+`"]}`)
		}
	}))
	defer server.Close()
	ask := func(base string) (*terminal.Remote, error) { return terminal.NewRemote(base, "secret", clock) }
	moved, err := ask(server.URL + "/moved/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = moved.Job(t.Context(), "1"); err == nil || asked {
		t.Errorf("a redirect was followed: %v", err)
	}
	r, err := ask(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Job(t.Context(), "1"); !errors.Is(err, jobs.ErrNotFound) || !strings.Contains(err.Error(), "nothing with this") {
		t.Error(err)
	}
	if _, err := r.Job(t.Context(), "../../x"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	for _, wrong := range []string{"", "shop.example.com", "ftp://x", "https://user:pw@x", "http://"} {
		if _, err := ask(wrong); err == nil {
			t.Errorf("%q is an address", wrong)
		}
	}
	if _, err := terminal.NewRemote(server.URL, "", clock); err == nil || !strings.Contains(err.Error(), "CMSJOBS_TOKEN") {
		t.Error(err)
	}
}

// script answers with one value after the other.
func script[T any](values ...T) func(context.Context) (T, error) {
	next := 0
	return func(context.Context) (T, error) {
		if next == len(values) {
			var none T
			return none, errors.New("no more")
		}
		next++
		return values[next-1], nil
	}
}

func lines(now string, before *string) []string {
	if before != nil && *before == now {
		return nil
	}
	return []string{now}
}

// TestWithoutATerminalLinesArePrinted until the end, a wrong answer, or once.
func TestWithoutATerminalLinesArePrinted(t *testing.T) {
	var out bytes.Buffer
	screen := terminal.Screen[string]{Every: time.Millisecond, Ask: script("a", "a", "b", "end"), Lines: lines,
		Ended: func(v string) bool { return v == "end" }, Now: clock}
	if last, err := screen.Show(t.Context(), terminal.Output{Out: &out}); err != nil || last != "end" ||
		out.String() != "a\nb\nend\n" {
		t.Errorf("%q, %v: %q", last, err, out.String())
	}
	out.Reset()
	screen.Ask = script("a", "b")
	if _, err := screen.Show(t.Context(), terminal.Output{Out: &out, Once: true}); err != nil || out.String() != "a\n" {
		t.Errorf("%v: %q", err, out.String())
	}
	out.Reset()
	screen.Ask = script[string]()
	if _, err := screen.Show(t.Context(), terminal.Output{Out: &out}); err == nil || err.Error() != "no more" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	screen.Ask = func(context.Context) (string, error) { cancel(); return "a", nil }
	if _, err := screen.Show(ctx, terminal.Output{Out: &out}); err != nil {
		t.Errorf("a stop is an error: %v", err)
	}
	out.Reset()
	all := terminal.Screen[terminal.Figures]{Every: time.Millisecond, Ask: script(busy()), Lines: terminal.TopLines, Now: clock}
	if _, err := all.Show(t.Context(), terminal.Output{Out: &out, JSON: true, Once: true}); err != nil ||
		!json.Valid(out.Bytes()) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestATerminalIsDrawnUntilQ runs the program of the terminal with keys from a pipe.
func TestATerminalIsDrawnUntilQ(t *testing.T) {
	in, keys := io.Pipe()
	defer keys.Close()
	drawn := make(chan struct{}, 100)
	screen := terminal.Screen[string]{Every: time.Millisecond, Ask: func(context.Context) (string, error) { return "figure", nil },
		Draw: func(s string, v terminal.View) string {
			if v.Paused {
				s += " paused"
			}
			select {
			case drawn <- struct{}{}:
			default:
			}
			return s
		}, Now: clock}
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		_, err := screen.Show(t.Context(), terminal.Output{In: in, Out: &out, TTY: true, Width: 80, Height: 24})
		done <- err
	}()
	for _, key := range []string{" ", "q"} {
		select {
		case <-drawn:
		case <-time.After(30 * time.Second):
			t.Fatal("nothing was drawn")
		}
		if _, err := io.WriteString(keys, key); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		if err != nil || !strings.Contains(out.String(), "figure") {
			t.Errorf("%v: %q", err, out.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("q does not quit")
	}
}
