package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

type pageData struct {
	Configured bool
	Plots      []chart.Plot
	Items      []UsageItem
	Total      int64
	Top        int64
	web.RunActions
}

func (h handlers) usagePage(r *web.Request) error {
	v := pageData{Configured: h.port != nil, Top: 1}
	var live string
	v.RunActions, live = r.RunActions(web.Cleaners()...)
	ready := true
	if v.Configured {
		var items []UsageItem
		var err error
		items, ready, err = web.Cached(r, "usage", h.port.StorageUsage)
		if err != nil {
			return fmt.Errorf("measuring sizes: %w", err)
		}
		items = slices.Clone(items)
		slices.SortStableFunc(items, func(a, b UsageItem) int {
			return cmp.Or(strings.Compare(a.Class, b.Class), cmp.Compare(b.Bytes, a.Bytes))
		})
		v.Items = items
		if v.Plots, err = h.sizePlots(r); err != nil {
			return err
		}
		for _, r := range items {
			v.Total, v.Top = v.Total+r.Bytes, max(v.Top, r.Bytes)
		}
	}
	return r.Show(web.PageView{Name: "usage", Data: v, Live: live, Ready: ready})
}

// sizesBack is how far the plots of sizes look back.
const sizesBack = 90 * 24 * time.Hour

// sizePlots show how folders and tables grew, where that was written down on
// two days at least.
func (h handlers) sizePlots(r *web.Request) ([]chart.Plot, error) {
	history, kept := h.port.(SizeHistory)
	if !kept {
		return nil, nil
	}
	days, err := history.SizesSince(r.Ctx(), r.Now().Add(-sizesBack))
	if err != nil {
		return nil, fmt.Errorf("reading how sizes grew: %w", err)
	}
	if len(days) < 2 {
		return nil, nil
	}
	return []chart.Plot{
		sizePlot(r.Printer(), "plot.disk", days, func(d SizeDay) int64 { return d.Disk }),
		sizePlot(r.Printer(), "plot.tables", days, func(d SizeDay) int64 { return d.Tables }),
	}, nil
}

func sizePlot(lang locale.Printer, key string, days []SizeDay, of func(SizeDay) int64) chart.Plot {
	first, last := days[0], days[len(days)-1]
	d := chart.Chart{First: first.Day, Last: last.Day}
	var top int64
	for _, day := range days {
		n := of(day)
		top = max(top, n)
		d.Bars = append(d.Bars, chart.Bar{Label: day.Day + ": " + format.Bytes(n), Low: float64(n)})
	}
	sum := format.Bytes(of(last))
	switch grown := of(last) - of(first); {
	case grown > 0:
		sum += ", " + lang.Text("plot.usage", format.Bytes(grown), first.Day)
	case grown < 0:
		sum += ", " + lang.Text("plot.shrink", format.Bytes(-grown), first.Day)
	default:
		sum += ", " + lang.Text("plot.same", first.Day)
	}
	d.Name, d.Top = lang.Text(key)+": "+sum, format.Bytes(top)
	return chart.Plot{Key: key, Sum: sum, SVG: d.SVG()}
}

// overview shows what takes most space, and how sizes grew.
func (h handlers) overview(r *web.Request) (web.Summary, error) {
	section := &web.Section{ID: "usage", Key: "usage.storage", Path: "/admin/usage", Empty: "absent.usage"}
	summary := web.Summary{Section: section}
	if h.port == nil {
		return summary, nil
	}
	items, ready, err := web.Cached(r, "usage", h.port.StorageUsage)
	if err != nil { // the page shows everything else
		r.Log().Error("sizes not measured", "event", "web.figures_failed", "error", err)
		ready = true
	}
	summary.Pending = !ready
	largest := slices.SortedFunc(slices.Values(items), func(a, b UsageItem) int {
		return cmp.Compare(b.Bytes, a.Bytes)
	})
	for _, i := range largest[:min(len(largest), 8)] {
		section.Rows = append(section.Rows, web.SectionRow{Name: i.Name, Bytes: i.Bytes, Count: i.Rows})
	}
	summary.Storage, err = h.storage(r)
	return summary, err
}

// storage is how sizes grew; nil where nobody writes them down.
func (h handlers) storage(r *web.Request) (*web.Storage, error) {
	history, kept := h.port.(SizeHistory)
	if !kept {
		return nil, nil
	}
	days, err := history.SizesSince(r.Ctx(), r.Now().Add(-30*24*time.Hour))
	if err != nil {
		return nil, fmt.Errorf("reading how sizes grew: %w", err)
	}
	s := &web.Storage{Path: "/admin/usage", Free: -1}
	for _, d := range days {
		at, err := time.Parse(time.DateOnly, d.Day)
		if err != nil {
			return nil, fmt.Errorf("reading the day of a size: %w", err)
		}
		s.Days = append(s.Days, web.StorageDay{At: at, Parts: d.Parts})
	}
	if disk, knows := h.port.(Disk); knows {
		if free, err := disk.Free(r.Ctx()); err == nil { // else unknown
			s.Free = free
		}
	}
	return s, nil
}

// warm measures sizes ahead of the first person.
func (h handlers) warm(ctx context.Context, _ web.Config, cache *answers.Cache) error {
	if h.port == nil {
		return nil
	}
	_, err := answers.Await(ctx, cache, "usage", h.port.StorageUsage)
	return err
}
