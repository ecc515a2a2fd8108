package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func (b *browser) width(pixels int) {
	b.t.Helper()
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Emulation.setDeviceMetricsOverride",
			map[string]any{"width": pixels, "height": 1000, "deviceScaleFactor": 1, "mobile": pixels < 500}, nil)
	})
}

// noOverflow fails on a page that is wider than its window.
func (b *browser) noOverflow(what string, pixels int) {
	b.t.Helper()
	if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > pixels {
		b.t.Errorf("%s is %d pixels wide in a window of %d", what, wide, pixels)
	}
}

// TestTheOverviewInABrowser points at a chart, lets a job end, and looks at both
// languages and themes on a desk and on a phone, with and without scripts.
func TestTheOverviewInABrowser(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, plentiful)
	s.day()
	b := newBrowser(t, s)
	b.width(1440)
	b.signIn("admin")
	b.open("/admin")
	b.drawsCharts()
	b.pointsAtAChart(t)
	b.chartLives(t, s)
	for _, theme := range []string{"light", "dark"} {
		for _, lang := range []string{"en", "vi"} {
			b.look(theme, lang)
			for _, pixels := range []int{1440, 390} {
				b.width(pixels)
				for _, path := range []string{"/admin", "/admin?range=7d&by=type"} {
					b.open(path)
					b.drawsCharts()
					b.noOverflow(fmt.Sprintf("%s (%s, %s)", path, theme, lang), pixels)
					b.picture(path, fmt.Sprintf("cr-%s-%s-%d", theme, lang, pixels))
				}
			}
		}
	}
	b.quietConsole()
	b.withoutScripts(t)
}

// TestTheJobPageInABrowser looks at a job that failed after retries.
func TestTheJobPageInABrowser(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	id := s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
	s.work()
	first := time.Now().Add(-20 * time.Minute)
	for i, outcome := range []string{"retried", "retried", "retried"} {
		s.ran(first.Add(time.Duration(i*i)*time.Minute), "mail.send", "cmsjobs", outcome, 2*time.Second,
			50*time.Millisecond)
	}
	s.db.MustExec(fmt.Sprintf("UPDATE cmsjobs_runs SET uuid = '%s', error = 'dial tcp: connection refused' WHERE uuid = 'u'",
		id))
	b := newBrowser(t, s)
	b.width(1440)
	b.signIn("admin")
	for _, theme := range []string{"light", "dark"} {
		for _, lang := range []string{"en", "vi"} {
			b.look(theme, lang)
			for _, pixels := range []int{1440, 390} {
				b.width(pixels)
				b.open("/admin/jobs/" + id)
				b.noOverflow(fmt.Sprintf("the job (%s, %s)", theme, lang), pixels)
				b.picture("/admin/job", fmt.Sprintf("cr-%s-%s-%d", theme, lang, pixels))
				if bars := eval[int](b, `document.querySelectorAll("svg.gantt rect.f-warn, svg.gantt rect.f-bad").length`); bars != 4 {
					t.Errorf("%d attempts are drawn, want 4", bars)
				}
				if seen := eval[bool](b, `document.querySelector("ol.att").getClientRects().length > 0`); seen != (pixels < 500) {
					t.Errorf("the list of attempts on %d pixels: %t", pixels, seen)
				}
			}
		}
	}
	b.quietConsole()
}

// drawsCharts goes to each chart: the script draws it then.
func (b *browser) drawsCharts() {
	b.t.Helper()
	for i := range 3 {
		b.until(fmt.Sprintf(`(f => !!f && (f.scrollIntoView(), !!f.querySelector("canvas")))(document.querySelectorAll(
			"figure[data-values]")[%d])`, i))
	}
	eval[bool](b, `scrollTo(0, 0), true`)
}

// look chooses a theme and a language as the form of the page does.
func (b *browser) look(theme, lang string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`Promise.all(["theme=%s", "lang=%s"].map(x => fetch("/admin/look", {method: "POST", redirect: "manual",
		headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: x + "&back=/admin"}))).then(() => true)`, theme,
		lang))
}

// pointsAtAChart moves the pointer over the last step, in which two attempts
// completed and two did not.
func (b *browser) pointsAtAChart(t *testing.T) {
	t.Helper()
	eval[bool](b, `document.querySelector("[data-chart=throughput]").scrollIntoView({block: "center"}), true`)
	b.until(`!!document.querySelector("[data-chart=throughput] .u-over")`)
	at := eval[[]float64](b, `(r => [r.right - 4, r.top + 40])(document.querySelector("[data-chart=throughput] .u-over").getBoundingClientRect())`)
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": at[0], "y": at[1]}, nil)
	})
	b.until(`(e => !!e && !e.hidden && /Completed\s*\d+\s*Retried\s*\d+\s*Failed\s*\d+/.test(e.innerText))(document.querySelector("[data-chart=throughput] .tip"))`)
	values := `JSON.parse(document.querySelector("[data-chart=throughput]").dataset.values).lines.map(l => String(l.values.at(-1))).join()`
	shown := `[...document.querySelectorAll("[data-chart=throughput] .tip div")].map(e => e.lastChild.textContent).join()`
	if want, got := eval[string](b, values), eval[string](b, shown); got != want {
		t.Errorf("the pointer shows %s, the step has %s", got, want)
	}
}

// chartLives lets a job end: the legend counts it, the chart is the same one, and
// the pointer still shows its values.
func (b *browser) chartLives(t *testing.T, s *site) {
	t.Helper()
	eval[bool](b, `window.kept = document.querySelector("[data-chart=throughput] canvas"), true`)
	s.enqueue(`{"type":"cache.clear"}`)
	s.work()
	b.until(`document.querySelector("[data-legend=throughput]").textContent.includes("Completed 121")`)
	b.until(`window.kept === document.querySelector("[data-chart=throughput] canvas")`)
	b.until(`!document.querySelector("[data-chart=throughput] .tip").hidden`)
}

// withoutScripts reads the page as the server drew it.
func (b *browser) withoutScripts(t *testing.T) {
	t.Helper()
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	})
	for _, pixels := range []int{1440, 390} {
		b.width(pixels)
		b.within(func(ctx context.Context) error { return b.page.navigate(ctx, b.base+"/admin") })
		b.until(`document.querySelectorAll("figure svg.still").length === 3`)
		b.noOverflow("the overview without scripts", pixels)
		if heights := eval[string](b, `[...document.querySelectorAll("svg.still rect.b-ok")].filter(e => e.getBoundingClientRect().height > 1).length + ""`); heights == "0" {
			t.Error("no bar of the server's chart is seen")
		}
		b.picture("/admin", fmt.Sprintf("cr-noscript-%d", pixels))
	}
}
