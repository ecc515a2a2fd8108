package demosite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	name     = "admin"
	password = "demonstration"
)

// Site is the first site of the demo, running.
type Site struct {
	Base   string // of its addresses
	Temp   string // a folder that goes with the site
	binary string
	dir    string
	demo   *exec.Cmd
}

// Start builds cmsjobs from the checkout that is the working directory, and starts the
// demo in a temporary folder, on a free port.
func Start(ctx context.Context) (_ *Site, err error) {
	temp, err := os.MkdirTemp("", "cmsjobs-demosite-")
	if err != nil {
		return nil, err
	}
	s := &Site{Temp: temp, binary: filepath.Join(temp, "cmsjobs"), dir: filepath.Join(temp, "site")}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "./cmd/cmsjobs")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building: %w\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	s.Base = "http://" + address + "/sites/news"
	s.demo = exec.CommandContext(ctx, s.binary, "--set", "http.listen="+address, "--set",
		"http.admin_password="+password, "demo", "--dir", s.dir)
	if err := s.demo.Start(); err != nil {
		return nil, err
	}
	if err := Until(ctx, 2*time.Minute, func() bool { return answers(ctx, s.Base+"/readyz") }); err != nil {
		return nil, fmt.Errorf("waiting for the demo: %w", err)
	}
	return s, nil
}

// Stop ends the demo, and removes its folder.
func (s *Site) Stop() {
	if s.demo != nil && s.demo.Process != nil {
		_ = s.demo.Process.Kill()
		_ = s.demo.Wait() // killed, as we wanted
	}
	_ = os.RemoveAll(s.Temp)
}

// Run runs a command of cmsjobs on the site.
func (s *Site) Run(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, s.binary, append([]string{"--cms", s.dir}, args...)...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out, fmt.Errorf("cmsjobs %q: %w\n%s", args, err, exit.Stderr)
	}
	return out, err
}

// Shell runs a line of the shell in which cmsjobs is the site's command, and is what it
// printed. An error is part of it: a picture may show a wrong usage.
func (s *Site) Shell(ctx context.Context, line string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	script := `cmsjobs() { "$PROGRAM" --cms "$SITE" "$@"; }` + "\n" + line
	c := exec.CommandContext(ctx, "sh", "-c", script)
	c.Env = append(c.Environ(), "PROGRAM="+s.binary, "SITE="+s.dir, "NO_COLOR=1",
		"CMSJOBS_HTTP_LISTEN="+strings.TrimPrefix(s.Base, "http://"))
	out, err := c.CombinedOutput()
	if len(out) == 0 && err != nil {
		return err.Error()
	}
	return string(out)
}

// Quiet waits until nothing is due and nothing runs.
func (s *Site) Quiet(ctx context.Context, patience time.Duration) error {
	return Until(ctx, patience, func() bool {
		var stats struct{ Queued, Processing *int }
		out, err := s.Run(ctx, "--json", "jobs", "stats")
		return err == nil && json.Unmarshal(out, &stats) == nil && stats.Queued != nil && stats.Processing != nil &&
			*stats.Queued == 0 && *stats.Processing == 0
	})
}

// FirstJob is the newest job that such a list has.
func (s *Site) FirstJob(ctx context.Context, filter ...string) (id string, err error) {
	out, err := s.Run(ctx, append([]string{"--json", "jobs", "list"}, filter...)...)
	if err != nil {
		return "", err
	}
	var list struct{ Items []struct{ ID string } }
	if err := json.Unmarshal(out, &list); err != nil {
		return "", fmt.Errorf("reading the list of jobs: %w", err)
	}
	if len(list.Items) == 0 {
		return "", fmt.Errorf("the demo has no job for %q", filter)
	}
	return list.Items[0].ID, nil
}

// Cookie signs in, and is the header that says so.
func (s *Site) Cookie(ctx context.Context) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	form := url.Values{"name": {name}, "password": {password}}
	answer, err := send(ctx, client, http.MethodPost, s.Base+"/admin/sign-in", form)
	if err != nil {
		return "", err
	}
	base, err := url.Parse(s.Base)
	if err != nil {
		return "", err
	}
	cookies := jar.Cookies(base)
	if answer != http.StatusOK || len(cookies) == 0 {
		return "", fmt.Errorf("signing in: answer %d, %d cookies", answer, len(cookies))
	}
	return cookies[0].Name + "=" + cookies[0].Value, nil
}

// SignIn signs the browser of the context in.
func (s *Site) SignIn(ctx context.Context) error {
	return chromedp.Do(ctx, chromedp.Navigate(s.Base+"/admin/sign-in"), chromedp.SendKeys("input[name=name]", name),
		chromedp.SendKeys("input[name=password]", password+"\r"), chromedp.WaitVisible(chromedp.CSS("aside.side")))
}

// Chromium is where the browser is.
func Chromium() (string, error) {
	for _, program := range []string{"chromium", "google-chrome"} {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
	}
	return "", errors.New("chromium is needed: apt-get install chromium")
}

// Browser starts a headless Chromium with a window of a size; end ends it.
func Browser(ctx context.Context, width, height int) (browser context.Context, end func(), err error) {
	path, err := Chromium()
	if err != nil {
		return nil, nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(width, height))
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	ctx, leave := chromedp.NewContext(ctx)
	return ctx, func() { leave(); stop() }, nil
}

// Until waits for something to be so.
func Until(ctx context.Context, patience time.Duration, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

func answers(ctx context.Context, at string) bool {
	status, err := send(ctx, http.DefaultClient, http.MethodGet, at, nil)
	return err == nil && status == http.StatusOK
}

func send(ctx context.Context, client *http.Client, method, at string, form url.Values) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
