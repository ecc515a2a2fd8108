package analytics

import (
	"fmt"
	"net/http"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

func (h handlers) analytics(r *web.Request) error {
	limit, err := r.Number("limit", 10)
	if err != nil {
		return err
	}
	q := AnalyticsQuery{Since: r.QueryParam("since"), Until: r.QueryParam("until"),
		Site: redact.Clip(r.QueryParam("site"), 191), Limit: min(max(limit, 1), r.PageLimit())}
	if err := q.selected(r); err != nil {
		return err
	}
	for field, day := range map[string]string{"since": q.Since, "until": q.Until} {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			return web.RefuseField(http.StatusBadRequest, field, "%s must be a day as 2026-11-21, not %q.", field,
				redact.Clip(day, 40))
		}
	}
	report, err := h.port.Report(r.Ctx(), q)
	if err != nil {
		return fmt.Errorf("reading analytics: %w", err)
	}
	report.Days = ops.Each(report.Days, func(d AnalyticsDay) AnalyticsDay { return d })
	if report.Dimensions == nil {
		report.Dimensions = map[string][]AnalyticsItem{}
	}
	return r.JSON(http.StatusOK, report)
}
