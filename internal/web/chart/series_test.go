package chart

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func TestAScaleIsRound(t *testing.T) {
	for top, want := range map[float64]float64{0: 1, 1: 1, 4: 1, 5: 2, 8: 2, 9: 5, 30: 10, 303: 100, 1700: 500,
		40000: 10000} {
		if got := gridStep(top); got != want {
			t.Errorf("the scale up to %g has steps of %g, want %g", top, got, want)
		}
	}
}

func stacked() Series {
	return Series{Name: "Attempts <24h>", Since: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC), Step: 30 * time.Minute,
		Stacked: true, Unit: "n", Format: plain, Lines: []Line{
			{Name: "Completed", Key: "ok", Values: []float64{3, 0, 4}},
			{Name: "Failed", Key: "bad", Values: []float64{1, 0, 0}}}}
}

func TestBarsStandOnEachOther(t *testing.T) {
	got := string(stacked().SVG())
	for _, part := range []string{`aria-label="Attempts &lt;24h&gt;"`,
		`<g><title>10:00` + "\n" + `Completed: 3` + "\n" + `Failed: 1</title>` +
			`<rect class="b-ok" x="4.667%" y="25%" width="24%" height="75%"/>` +
			`<rect class="b-bad" x="4.667%" y="0%" width="24%" height="25%"/></g>`,
		`text-anchor="end">4</text>`, `<text x="66.67%" y="100%" dy="16">11:00</text>`} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in\n%s", part, got)
		}
	}
	if n := strings.Count(got, "<g>"); n != 2 {
		t.Errorf("%d steps are drawn, two have attempts", n)
	}
}

func TestALineIsBrokenWhereNothingWasMeasured(t *testing.T) {
	c := Series{Name: "Waits", Step: time.Minute, Format: plain, Lines: []Line{{Name: "p50", Key: "1",
		Values: []float64{1, 2, math.NaN(), 4}}}}
	if got := string(c.SVG()); !strings.Contains(got, `<path class="ln f-1" d="M0 75h.01L1 50M3 0h.01"/>`) {
		t.Error(got)
	}
	if got, err := c.Values(); err != nil || !strings.Contains(got, `"values":[1,2,null,4]`) {
		t.Error(got, err)
	}
}

func TestTheTableHasWhatTheChartShows(t *testing.T) {
	rows := stacked().Rows()
	if len(rows) != 2 || rows[0].At != "11:00" || strings.Join(rows[0].Values, " ") != "4 0" || rows[1].At != "10:00" ||
		strings.Join(rows[1].Values, " ") != "3 1" {
		t.Errorf("%+v", rows)
	}
}

func TestSmallDrawings(t *testing.T) {
	if got := string(Spark("bad", []float64{0, 2})); !strings.Contains(got, `class="spark bad"`) ||
		!strings.Contains(got, `d="M0 23L100 2"`) {
		t.Error(got)
	}
	if got := string(Spark("", []float64{math.NaN(), 2})); !strings.Contains(got, `d="M0 23L100 2"`) {
		t.Error(got)
	}
	got := string(Strip("2 ticks: 1 failed", []Square{{"ok", "02:00 completed"}, {"bad", "03:00 failed"}, {"part",
		"04:00 partial"}}))
	for _, part := range []string{`aria-label="2 ticks: 1 failed"`, `<rect class="ok" x="0" y="4" width="8" height="8"`,
		`<rect class="bad" x="10" y="0" width="8" height="16"`, `<title>03:00 failed</title>`,
		`<rect class="part-of" x="20.5" y=".5" width="7" height="15" rx="1"/><rect class="part" x="20" y="8" width="8" height="8"`,
		`<title>04:00 partial</title>`} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in %s", part, got)
		}
	}
}
