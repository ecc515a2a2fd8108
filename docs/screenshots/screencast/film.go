package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"
)

// every is the time between two frames.
const every = 250 * time.Millisecond

// frame is a picture of the window and how long it is shown.
type frame struct {
	path  string
	lasts time.Duration
	data  []byte
}

// film is a walk through the pages.
type film struct {
	base, dir string
	frames    []frame
}

func (f *film) length() (all time.Duration) {
	for _, x := range f.frames {
		all += x.lasts
	}
	return all
}

// walk shows what somebody does who comes to see whether everything works.
func (f *film) walk(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"the overview", f.open("/admin", 2500*time.Millisecond)},
		{"its charts", f.scroll("figure[data-chart=throughput]", 2500*time.Millisecond)},
		{"back to its top", f.scroll("main h1", time.Second)},
		{"back up now", f.press(`main form:has(input[value="backup.generate"]) button`, 2*time.Second)},
		{"what it did", f.press(`.toast a`, 2*time.Second)},
		{"its result", f.scroll("#result", 1500*time.Millisecond)},
		{"a form made for a type", f.open("/admin/enqueue?type=cmsjobs.probe", 500*time.Millisecond)},
		{"how long it runs", f.fill("#p-sleep", "2s", 750*time.Millisecond)},
		{"a job that runs, live", f.press("form.card button.main", 4*time.Second)},
		{"failed jobs by cause", f.open("/admin/failed", 2500*time.Millisecond)},
		{"retry one of them first", f.press(`button[id^="canary-"]`, 3*time.Second)},
		{"backups", f.open("/admin/backups", 2500*time.Millisecond)},
		{"the list of backups", f.scroll("main .tbl", 2500*time.Millisecond)},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func (f *film) open(path string, lasts time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := chromedp.Do(ctx, chromedp.Navigate(f.base+path), chromedp.WaitVisible("main h1")); err != nil {
			return err
		}
		return f.hold(ctx, lasts)
	}
}

// fill writes into a field.
func (f *film) fill(selector, value string, lasts time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := chromedp.Do(ctx, chromedp.SendKeys(selector, value)); err != nil {
			return err
		}
		return f.hold(ctx, lasts)
	}
}

// scroll goes to a part of the page.
func (f *film) scroll(selector string, lasts time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		script := fmt.Sprintf(`(e => !!e && (e.scrollIntoView({block: "center", behavior: "smooth"}), true))(
			document.querySelector(%q))`, selector)
		there, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script))
		if err != nil || !there {
			return fmt.Errorf("nothing like %s: %w", selector, err)
		}
		return f.hold(ctx, lasts)
	}
}

// press shows a ring around a button or a link, and presses it.
func (f *film) press(selector string, lasts time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		ring := fmt.Sprintf(`(e => !!e && (e.scrollIntoView({block: "nearest"}), e.style.outline = "3px solid #e0761c",
			e.style.outlineOffset = "3px", true))(document.querySelector(%q))`, selector)
		there, err := chromedp.Run(ctx, chromedp.Evaluate[bool](ring))
		if err != nil || !there {
			return fmt.Errorf("nothing like %s: %w", selector, err)
		}
		if err := f.hold(ctx, time.Second); err != nil {
			return err
		}
		if err := chromedp.Do(ctx, chromedp.Click(selector), chromedp.WaitVisible("main h1")); err != nil {
			return err
		}
		return f.hold(ctx, lasts)
	}
}

// hold films the window for a while. A frame that equals the one before only makes that
// one last longer.
func (f *film) hold(ctx context.Context, lasts time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range lasts / every {
		data, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return err
		}
		if n := len(f.frames); n > 0 && bytes.Equal(f.frames[n-1].data, data) {
			f.frames[n-1].lasts += every
		} else {
			path := filepath.Join(f.dir, fmt.Sprintf("frame-%03d.png", n))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				return err
			}
			f.frames = append(f.frames, frame{path, every, data})
		}
		<-tick.C
	}
	return nil
}
