package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/cmsjobs/cmsjobs/docs/screenshots/demosite"
)

// picture is a page and how it is photographed.
type picture struct {
	path  string
	job   string // its id stands for %s in the path: the newest job with these words of jobs list
	row   string // the text of a row that is in the middle
	typed string // is written into the field that is named in front of it: #q=text
	phone bool   // a small window with the dark theme
}

// pages are what is photographed, by the picture's name.
var pages = map[string]picture{
	"overview": {path: "/admin"}, "jobs": {path: "/admin/jobs"}, "failed": {path: "/admin/failed"},
	"schedules": {path: "/admin/schedules"}, "php-jobs": {path: "/admin/jobs", row: "App\\Jobs"},
	"backups": {path: "/admin/backups"}, "analytics": {path: "/admin/analytics?range=7"},
	"api-docs":   {path: "/api/docs"},
	"filter":     {path: "/admin/jobs", typed: "#q=ty"},
	"job":        {path: "/admin/jobs/%s", job: "--type=mail.send --status=failed"},
	"explain":    {path: "/admin/jobs/%s", job: "--status=queued"},
	"progress":   {path: "/admin/jobs/%s", job: "--status=processing"},
	"enqueue":    {path: "/admin/enqueue?type=media.processImage"},
	"queues":     {path: "/admin/queues"},
	"workers":    {path: "/admin/workers"},
	"schedule":   {path: "/admin/schedules/backup.generate"},
	"throughput": {path: "/admin?range=30d&by=type#throughput"},
	"phone":      {path: "/admin", phone: true},
	"audit":      {path: "/admin/audit"},
	"mail":       {path: "/admin/mail"},
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docs/screenshots:", err)
		os.Exit(1)
	}
}

// run makes the pictures with these names; without names it makes all.
func run(ctx context.Context, only []string) error {
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
	wanted := func(name string) bool { return len(only) == 0 || slices.Contains(only, name) }
	if err := terminals(ctx, site, wanted); err != nil {
		return err
	}
	small := func(name string) int { // the window stays small after the first one of a phone
		return map[bool]int{true: 1}[pages[name].phone]
	}
	for _, name := range slices.SortedFunc(maps.Keys(pages), func(a, b string) int {
		return cmp.Or(small(a)-small(b), cmp.Compare(a, b))
	}) {
		if !wanted(name) {
			continue
		}
		if err := photograph(ctx, site, pages[name], name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
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

func photograph(ctx context.Context, site *demosite.Site, p picture, name string) error {
	if p.job != "" {
		id, err := site.FirstJob(ctx, strings.Fields(p.job)...)
		if err != nil {
			return err
		}
		p.path = fmt.Sprintf(p.path, id)
	}
	if p.phone {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile)); err != nil {
			return err
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(site.Base+p.path), chromedp.WaitVisible("main, #swagger-ui, body"),
		chromedp.Sleep(2*time.Second)); err != nil {
		return err
	}
	if p.phone {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](
			`document.documentElement.dataset.theme = "dark"`)); err != nil {
			return err
		}
	}
	if field, text, typed := strings.Cut(p.typed, "="); typed {
		if err := chromedp.Do(ctx, chromedp.SendKeys(field, text), chromedp.Sleep(time.Second)); err != nil {
			return err
		}
	}
	if p.row != "" {
		script := fmt.Sprintf(`(Array.from(document.querySelectorAll("tr")).find(
			row => row.textContent.includes(%q)).scrollIntoView({block: "center"}), true)`, p.row)
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script)); err != nil {
			return err
		}
	}
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return store(ctx, name, shot)
}

// store writes a picture of the documentation, with few colours.
func store(ctx context.Context, name string, shot []byte) error {
	path := filepath.Join("docs", "images", name+".png")
	if err := os.WriteFile(path, shot, 0o644); err != nil { //nolint:gosec // a picture of the documentation
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
