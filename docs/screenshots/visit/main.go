package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// pages are what every service beside a CMS shows.
var pages = []string{"/admin", "/admin/jobs", "/admin/failed", "/admin/schedules", "/admin/backups", "/admin/mail",
	"/admin/sitemap", "/admin/settings"}

func main() {
	base := flag.String("base", "http://127.0.0.1:8080", "where the page is")
	name := flag.String("name", "admin", "who signs in")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := visit(ctx, *base, *name, os.Getenv("CMSJOBS_HTTP_ADMIN_PASSWORD")); err != nil {
		fmt.Fprintln(os.Stderr, "visit:", err)
		os.Exit(1)
	}
	fmt.Printf("visit: %d pages without a fault, a job enqueued by the form and completed\n", len(pages))
}

func visit(ctx context.Context, base, name, password string) error {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		chromium, err = exec.LookPath("google-chrome")
	}
	if err != nil {
		return errors.New("chromium is needed: apt-get install chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 800))
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	defer end()
	ctx, end = chromedp.NewContext(ctx)
	defer end()
	var seen faults
	if err := chromedp.Listen(ctx, seen.notice); err != nil {
		return err
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(base+"/admin/sign-in"), chromedp.SendKeys("input[name=name]", name),
		chromedp.SendKeys("input[name=password]", password+"\r"),
		chromedp.WaitVisible(chromedp.CSS("aside.side"))); err != nil {
		return fmt.Errorf("signing in: %w", err)
	}
	for _, page := range pages {
		if err := chromedp.Do(ctx, chromedp.Navigate(base+page), chromedp.WaitVisible("main h1")); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(base+"/admin/enqueue?type=sitemap.generate"),
		chromedp.Click("form[method=post] button.btn.main"),
		chromedp.WaitVisible(".page-head .badge.ok")); err != nil {
		return fmt.Errorf("enqueuing by the form: %w", err)
	}
	return seen.err()
}

// faults are what went wrong in the pages.
type faults struct {
	sync.Mutex
	list []string
}

func (f *faults) notice(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "a script threw: " + e.ExceptionDetails.Text
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			fault = fmt.Sprintf("%s: %d", e.Response.URL, e.Response.Status)
		}
	}
	if fault == "" {
		return
	}
	f.Lock()
	defer f.Unlock()
	f.list = append(f.list, fault)
}

func (f *faults) err() error {
	f.Lock()
	defer f.Unlock()
	if len(f.list) > 0 {
		return errors.New(strings.Join(f.list, "\n"))
	}
	return nil
}
