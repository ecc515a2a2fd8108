//go:build unix

package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/external"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// run runs a job of a type and returns its result as JSON.
func run(t *testing.T, ctx context.Context, c external.Config, jobType, payload string) (string, error) {
	t.Helper()
	c.Now, c.Logger = time.Now, slog.New(slog.DiscardHandler)
	h, err := external.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := jobs.NewRegistry()
	h.Register(r)
	entry, known := r.Lookup(jobType)
	if !known {
		return "", jobs.ErrNotFound
	}
	one := jobs.NewRun(time.Now)
	err = entry.Run(jobs.WithRun(ctx, one), jobs.Job{UUID: "u-1", Type: jobType, Data: json.RawMessage(payload)})
	result, _ := one.Result()
	return string(result), err
}

func shell(script string) external.Command {
	return external.Command{Program: "/bin/sh", Args: []string{"-c", script}}
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CMSJOBS_HTTP_ADMIN_PASSWORD", "hunter2")
	env := shell(`pwd; echo "$GREETING/$CMSJOBS_HTTP_ADMIN_PASSWORD/$HOME"`)
	env.Dir, env.Env = dir, map[string]string{"GREETING": "hi there"}
	long := shell(`i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done`)
	long.Output = 100
	hungry := shell(`head -c 200000000 /dev/zero | tail -c 200000000 | wc -c`)
	hungry.Memory = 50 << 20
	c := external.Config{Path: os.Getenv("PATH"), Commands: map[string]external.Command{"env": env, "long": long,
		"fails": shell(`echo first; echo no such table >&2; exit 3`), "hungry": hungry}}
	for _, x := range []struct{ payload, result, refused string }{
		{`{"name":"env"}`, `"exit":0,"output":"` + dir + `\nhi there//\n"`, ""},
		{`{"command":"env"}`, `hi there`, ""},
		{`{"name":"long"}`, `line 1999`, ""},
		{`{"name":"long"}`, `bytes before this were cut`, ""},
		{`{"name":"fails"}`, `"exit":3`, "no such table"},
		{`{"name":"rm -rf"}`, ``, "not allowed by the configuration (external); allowed are env, fails, hungry, long"},
		{`{"name":"env","args":["x"]}`, `"ignored":["args"]`, ""},
	} {
		result, err := run(t, t.Context(), c, "command.run", x.payload)
		if !strings.Contains(result, x.result) || (err == nil) != (x.refused == "") ||
			err != nil && !strings.Contains(err.Error(), x.refused) {
			t.Errorf("%s left %s, %v; want %s, %q", x.payload, result, err, x.result, x.refused)
		}
		if len(result) > 1000 || strings.Contains(result, "hunter2") {
			t.Errorf("%s left %s", x.payload, result)
		}
	}
	if runtime.GOOS == "linux" {
		if result, err := run(t, t.Context(), c, "command.run", `{"name":"hungry"}`); err == nil &&
			!strings.Contains(result, "emory") {
			t.Errorf("200 MB fit into 50: %s", result)
		}
	}
	if _, err := run(t, t.Context(), external.Config{}, "command.run", `{"name":"env"}`); !errors.Is(err,
		jobs.ErrNotFound) {
		t.Errorf("the type exists without an entry: %v", err)
	}
}

// A program whose time is over ends with what it has started.
func TestACommandEndsInTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alive")
	slow := shell(`(sleep 2; touch ` + file + `) & sleep 60`)
	slow.Timeout = 300 * time.Millisecond
	c := external.Config{Path: os.Getenv("PATH"), Commands: map[string]external.Command{"slow": slow}}
	began := time.Now()
	if _, err := run(t, t.Context(), c, "command.run", `{"name":"slow"}`); err == nil ||
		!strings.Contains(err.Error(), "external.commands.slow.timeout") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	for end := began.Add(2500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			t.Fatal("what the program started lived on")
		}
	}
}

func TestCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/teapot" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, r.Method+" "+string(body)+" "+r.Header.Get("X-Key")+" "+r.Header.Get("Signed"))
	}))
	defer server.Close()
	c := external.Config{Client: server.Client(), Sign: func(h http.Header, secret, id string, _ time.Time,
		body []byte) error {
		h.Set("Signed", secret+"."+id+"."+string(body))
		return nil
	}, Calls: map[string]external.Call{
		"plain":  {URL: server.URL, Header: map[string]string{"X-Key": "k"}},
		"signed": {URL: server.URL, Body: `{"a":1}`, Secret: "s"},
		"tea":    {URL: server.URL + "/teapot"}, "wanted": {URL: server.URL + "/teapot", Expect: []int{418}},
		"cut":         {URL: server.URL, Method: "PUT", Output: 3},
		"unavailable": {URL: "http://127.0.0.1:1/?key=PLANTED"},
	}}
	for name, want := range map[string]struct{ result, refused string }{
		"plain": {`"status":200,"answer":"GET  k "`, ""}, "signed": {`POST {\"a\":1}  s.u-1.{\"a\":1}`, ""},
		"tea": {`"status":418`, "answered 418"}, "wanted": {`"status":418`, ""}, "cut": {`"answer":"PUT"`, ""},
		"other": {``, "not allowed"}, "unavailable": {``, "refused"},
	} {
		result, err := run(t, t.Context(), c, "http.call", `{"name":"`+name+`"}`)
		if strings.Contains(fmt.Sprint(result, err), "PLANTED") {
			t.Errorf("%s tells the key of its address: %v", name, err)
		}
		if !strings.Contains(result, want.result) || (err == nil) != (want.refused == "") ||
			err != nil && !strings.Contains(err.Error(), want.refused) {
			t.Errorf("%s left %s, %v; want %+v", name, result, err, want)
		}
	}
}

func TestEntriesAreChecked(t *testing.T) {
	for name, c := range map[string]external.Config{
		"whole path":    {Commands: map[string]external.Command{"x": {Program: "sh"}}},
		"dir must be":   {Commands: map[string]external.Command{"x": {Program: "/bin/sh", Dir: "a"}}},
		"at most 4h":    {Commands: map[string]external.Command{"x": {Program: "/bin/sh", Timeout: 5 * time.Hour}}},
		"url must":      {Calls: map[string]external.Call{"x": {URL: "ftp://a"}}},
		"no status":     {Calls: map[string]external.Call{"x": {URL: "http://a", Expect: []int{9}}}},
		"1048576 bytes": {Calls: map[string]external.Call{"x": {URL: "http://a", Output: 2 << 20}}},
	} {
		c.Now = time.Now
		if _, err := external.New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}
