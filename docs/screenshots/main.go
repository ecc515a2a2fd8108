package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// pages are what is photographed, by the picture's name. Behind # is the text of a row
// that is in the middle of its picture.
var pages = map[string]string{"overview": "/admin", "jobs": "/admin/jobs", "failed": "/admin/failed",
	"schedules": "/admin/schedules",
	"php-jobs":  "/admin/jobs#App\\Jobs",
	"backups":   "/admin/backups", "analytics": "/admin/analytics", "api-docs": "/api/docs"}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "docs/screenshots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "cmsjobs-screenshots-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	base, stop, err := startDemo(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return errors.New("chromium is needed: apt-get install chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium),
		chromedp.UserDataDir(filepath.Join(dir, "browser")),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 800))
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	defer end()
	ctx, end = chromedp.NewContext(ctx)
	defer end()
	if err := signIn(ctx, base); err != nil {
		return err
	}
	for name, page := range pages {
		if err := photograph(ctx, base+page, filepath.Join("docs", "images", name+".png")); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
	}
	return nil
}

const password = "screenshot"

// startDemo runs the demo on a free port, with some more jobs than it has, until
// stop is called.
func startDemo(ctx context.Context, dir string) (base string, stop func(), err error) {
	binary, site := filepath.Join(dir, "cmsjobs"), filepath.Join(dir, "site")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/cmsjobs").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("building: %w\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return "", nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", nil, err
	}
	demo := exec.CommandContext(ctx, binary, "--set", "http.listen="+address, "--set", "http.admin_password="+password,
		"demo", "--dir", site)
	if err := demo.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = demo.Process.Kill()
		_ = demo.Wait() // killed, as we wanted
	}
	base = "http://" + address
	if err := until(ctx, func() bool { return answers(ctx, base+"/readyz") }); err != nil {
		stop()
		return "", nil, err
	}
	const more = 8
	for n := range more {
		payload := fmt.Sprintf(`{"sleep":"%dms"}`, n*7%90)
		if n == more-1 {
			payload = `{"sleep":"4m"}` // one that still runs
		}
		if out, err := exec.CommandContext(ctx, binary, "--cms", site, "enqueue", "cmsjobs.probe",
			payload).CombinedOutput(); err != nil {
			stop()
			return "", nil, fmt.Errorf("enqueuing: %w\n%s", err, out)
		}
	}
	done := func() bool {
		out, err := exec.CommandContext(ctx, binary, "--cms", site, "jobs", "list", "--json", "--status",
			"queued", "--type", "cmsjobs.probe").Output()
		return err == nil && !strings.Contains(string(out), `"id"`)
	}
	if err := until(ctx, done); err != nil {
		fmt.Fprintln(os.Stderr, "docs/screenshots: some of the demo's jobs still wait")
	}
	return base, stop, nil
}

func answers(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// until waits for something to be so.
func until(ctx context.Context, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
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

func signIn(ctx context.Context, base string) error {
	return chromedp.Do(ctx, chromedp.Navigate(base+"/admin/sign-in"), chromedp.SendKeys("input[name=name]", "admin"),
		chromedp.SendKeys("input[name=password]", password+"\r"), chromedp.WaitVisible(chromedp.CSS("aside.side")))
}

func photograph(ctx context.Context, url, path string) error {
	url, row, _ := strings.Cut(url, "#")
	if err := chromedp.Do(ctx, chromedp.Navigate(url), chromedp.WaitVisible("main, #swagger-ui, body"),
		chromedp.Sleep(2*time.Second)); err != nil {
		return err
	}
	if row != "" {
		script := fmt.Sprintf(`(Array.from(document.querySelectorAll("tr")).find(
			row => row.textContent.includes(%q)).scrollIntoView({block: "center"}), true)`, row)
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script)); err != nil {
			return err
		}
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, picture, 0o644); err != nil { //nolint:gosec // a picture of the documentation
		return err
	}
	if convert, err := exec.LookPath("convert"); err == nil {
		if out, err := exec.CommandContext(ctx, convert, path, "-strip", "+dither", "-colors", "128", "-define",
			"png:compression-level=9", path).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	info, err := os.Stat(path)
	if err == nil {
		fmt.Printf("%s %d KiB\n", path, info.Size()/1024)
	}
	return err
}
