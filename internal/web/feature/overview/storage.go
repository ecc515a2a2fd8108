package overview

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// storageView is what the site takes, how it grew and when the disk will be full.
type storageView struct {
	Path  string
	Sum   string
	Full  string // when the disk will be full, or "–" with the reason
	Chart template.HTML
	Parts []storagePart
}

// storagePart is a kind of files or tables.
type storagePart struct {
	Name, Size, Growth string
	Share              int64 // of the largest, in per cent
}

const (
	day = 24 * time.Hour
	// fitDays is how many days a trend needs: two always lie on a line.
	fitDays = 3
	// forecastDays is how far the chart looks ahead; farther away, no line of a
	// month tells a date.
	forecastDays = 30
	farthest     = 3 * 365
)

// trend is a line through sizes by days: least squares.
type trend struct {
	start  time.Time
	at     float64 // on the first day
	perDay float64
	known  bool
}

// trendOf fits a line; of is the size of a day.
func trendOf(days []web.StorageDay, of func(web.StorageDay) int64) trend {
	if len(days) < fitDays {
		return trend{}
	}
	t := trend{start: days[0].At, known: true}
	n, sx, sy, sxx, sxy := float64(len(days)), 0.0, 0.0, 0.0, 0.0
	for _, d := range days {
		x, y := float64(d.At.Sub(t.start)/day), float64(of(d))
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	t.perDay = (n*sxy - sx*sy) / (n*sxx - sx*sx) // days differ: no zero
	t.at = (sy - t.perDay*sx) / n
	return t
}

func total(d web.StorageDay) (sum int64) {
	for _, bytes := range d.Parts {
		sum += bytes
	}
	return sum
}

// newStorageView is nil while nothing was measured.
func newStorageView(lang locale.Printer, s web.Storage, now time.Time) *storageView {
	if len(s.Days) == 0 {
		return nil
	}
	last := s.Days[len(s.Days)-1]
	v := &storageView{Path: s.Path, Sum: format.Bytes(total(last))}
	if s.Free >= 0 {
		v.Sum = lang.Text("storage.sum", v.Sum, format.Bytes(s.Free))
	}
	t := trendOf(s.Days, total)
	left := -1.0 // days until the disk is full
	switch {
	case !t.known:
		v.Full = lang.Text("storage.short", fitDays)
	case s.Free < 0:
		v.Full = lang.Text("storage.unknown")
	case t.perDay < 1 || float64(s.Free)/t.perDay > farthest:
		v.Full = lang.Text("storage.stable")
	default:
		left = float64(s.Free) / t.perDay
		v.Full = lang.Text("storage.full", now.Add(time.Duration(left*float64(day))).UTC().Format(time.DateOnly))
	}
	v.Chart = storageChart(lang, s, t, left, v.Full)
	var top int64
	for _, bytes := range last.Parts {
		top = max(top, bytes)
	}
	names := slices.SortedFunc(maps.Keys(last.Parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(last.Parts[b], last.Parts[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		growth := trendOf(s.Days, func(d web.StorageDay) int64 { return d.Parts[name] })
		v.Parts = append(v.Parts, storagePart{lang.Name("part.", name), format.Bytes(last.Parts[name]),
			growthText(lang, growth), format.Percent(last.Parts[name], top)})
	}
	return v
}

// growthText is what a part grows by a day.
func growthText(lang locale.Printer, t trend) string {
	const little = 1 << 10
	switch {
	case !t.known:
		return "–"
	case t.perDay > little:
		return lang.Text("storage.grows", format.Bytes(int64(t.perDay)))
	case t.perDay < -little:
		return lang.Text("storage.shrinks", format.Bytes(int64(-t.perDay)))
	}
	return lang.Text("storage.same")
}

// storageChart draws thirty days back and, where there is a trend, thirty ahead.
func storageChart(lang locale.Printer, s web.Storage, t trend, left float64, name string) template.HTML {
	const width, bottom = 400.0, 80.0
	last := s.Days[len(s.Days)-1]
	from, until := last.At.Add(-forecastDays*day), last.At.Add(forecastDays*day)
	x := func(at time.Time) float64 { return width * float64(at.Sub(from)) / float64(until.Sub(from)) }
	now := float64(total(last))
	ahead, top := now, 1.0
	if t.known {
		ahead = max(now+forecastDays*t.perDay, 0)
	}
	for _, d := range s.Days {
		top = max(top, float64(total(d)))
	}
	top = max(top, ahead) * 1.15
	limit := now + float64(s.Free)
	if near := s.Free >= 0 && limit < 3*top; near {
		top = limit
	} else {
		limit = 0
	}
	y := func(bytes float64) float64 { return bottom - 72*min(bytes/top, 1) }
	var line strings.Builder
	for i, d := range s.Days {
		fmt.Fprintf(&line, "%s%.4g %.4g", map[bool]string{true: "M", false: "L"}[i == 0], x(d.At), y(float64(total(d))))
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="gantt storage" viewBox="0 0 400 96" role="img" aria-label="%s">`,
		template.HTMLEscapeString(lang.Text("storage.chart", format.Bytes(int64(now)), name)))
	fmt.Fprintf(&out, `<line class="f-grid" x1="0" x2="400" y1="%g" y2="%g"/>`, bottom, bottom)
	fmt.Fprintf(&out, `<path class="past" d="%sV%gH%.4gz"/><path class="ln f-1" d="%s"/>`, line.String(), bottom,
		x(s.Days[0].At), line.String())
	if limit > 0 {
		fmt.Fprintf(&out, `<path class="ln limit" d="M0 %.4gH400"/><text x="0" y="%.4g">%s</text>`, y(limit), y(limit)+13,
			format.Bytes(int64(limit)))
	}
	if t.known {
		days := float64(forecastDays)
		if left >= 0 {
			days = min(days, left)
		}
		end := last.At.Add(time.Duration(days * float64(day)))
		fmt.Fprintf(&out, `<path class="ln ahead" d="M%.4g %.4gL%.4g %.4g"/>`, x(last.At), y(now), x(end),
			y(max(now+days*t.perDay, 0)))
	}
	fmt.Fprintf(&out, `<circle cx="%.4g" cy="%.4g" r="3" class="f-ok"/><text x="0" y="94">%s</text><text x="200" y="94" `+
		`text-anchor="middle">%s</text><text x="400" y="94" text-anchor="end">%s</text></svg>`, x(last.At), y(now),
		from.Format("01-02"), last.At.Format("01-02"), until.Format("01-02"))
	return template.HTML(out.String())
}
