package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/cmsjobs/cmsjobs/docs/screenshots/demosite"
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
	site, err := demosite.Start(ctx)
	if err != nil {
		return err
	}
	defer site.Stop()
	if err := enqueueMore(ctx, site); err != nil {
		return err
	}
	ctx, end, err := demosite.Browser(ctx, 1280, 800)
	if err != nil {
		return err
	}
	defer end()
	if err := site.SignIn(ctx); err != nil {
		return err
	}
	for name, page := range pages {
		if err := photograph(ctx, site.Base+page, filepath.Join("docs", "images", name+".png")); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
	}
	return nil
}

// enqueueMore enqueues some more jobs than the demo has, and waits until they have run or
// run.
func enqueueMore(ctx context.Context, site *demosite.Site) error {
	const more = 8
	for n := range more {
		payload := fmt.Sprintf(`{"sleep":"%dms"}`, n*7%90)
		if n == more-1 {
			payload = `{"sleep":"4m"}` // one that still runs
		}
		if _, err := site.Run(ctx, "enqueue", "cmsjobs.probe", payload); err != nil {
			return err
		}
	}
	done := func() bool {
		out, err := site.Run(ctx, "jobs", "list", "--json", "--status", "queued", "--type", "cmsjobs.probe")
		return err == nil && !strings.Contains(string(out), `"id"`)
	}
	if err := demosite.Until(ctx, time.Minute, done); err != nil {
		fmt.Fprintln(os.Stderr, "docs/screenshots: some of the demo's jobs still wait")
	}
	return nil
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
