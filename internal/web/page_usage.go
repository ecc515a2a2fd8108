package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/labstack/echo/v4"
)

func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

type growthPageData struct {
	Configured bool
	Plots      []plotted
	Rooms      []UsageItem
	Total      int64
	Top        int64
	runActionState
}

func (s *Server) usagePage(c echo.Context) error {
	v := growthPageData{Configured: s.cfg.StorageUsage != nil, Top: 1}
	var live string
	v.runActionState, live = s.runActions(c, slices.Clone(cleaners)...)
	ready := true
	if v.Configured {
		var rooms []UsageItem
		var err error
		rooms, ready, err = s.sizesKept(c.Request().Context())
		if err != nil {
			return fmt.Errorf("measuring sizes: %w", err)
		}
		rooms = slices.Clone(rooms)
		slices.SortStableFunc(rooms, func(a, b UsageItem) int {
			return cmp.Or(strings.Compare(a.Class, b.Class), cmp.Compare(b.Bytes, a.Bytes))
		})
		v.Rooms = rooms
		if v.Plots, err = s.sizePlots(c.Request().Context(), language(c)); err != nil {
			return err
		}
		for _, r := range rooms {
			v.Total, v.Top = v.Total+r.Bytes, max(v.Top, r.Bytes)
		}
	}
	return s.showSoon(c, "usage", "usage.title", live, ready, v)
}

// sizesBack is how far the plots of sizes look back.
const sizesBack = 90 * 24 * time.Hour

// sizePlots show how folders and tables grew, where that was written down on
// two days at least.
func (s *Server) sizePlots(ctx context.Context, lang string) ([]plotted, error) {
	history, kept := s.cfg.StorageUsage.(SizeHistory)
	if !kept {
		return nil, nil
	}
	days, err := history.SizesSince(ctx, s.cfg.Now().Add(-sizesBack))
	if err != nil {
		return nil, fmt.Errorf("reading how sizes grew: %w", err)
	}
	if len(days) < 2 {
		return nil, nil
	}
	return []plotted{
		sizePlot(lang, "plot.disk", days, func(d SizeDay) int64 { return d.Disk }),
		sizePlot(lang, "plot.tables", days, func(d SizeDay) int64 { return d.Tables }),
	}, nil
}

func sizePlot(lang, key string, days []SizeDay, of func(SizeDay) int64) plotted {
	first, last := days[0], days[len(days)-1]
	d := chart{First: first.Day, Last: last.Day}
	var top int64
	for _, day := range days {
		n := of(day)
		top = max(top, n)
		d.Bars = append(d.Bars, chartBar{Label: day.Day + ": " + size(n), Low: float64(n)})
	}
	sum := size(of(last))
	switch grown := of(last) - of(first); {
	case grown > 0:
		sum += ", " + translate(lang, "plot.usage", size(grown), first.Day)
	case grown < 0:
		sum += ", " + translate(lang, "plot.shrink", size(-grown), first.Day)
	default:
		sum += ", " + translate(lang, "plot.same", first.Day)
	}
	d.Name, d.Top = translate(lang, key)+": "+sum, size(top)
	return plotted{key, sum, d.svg()}
}
