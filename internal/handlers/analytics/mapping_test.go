package analytics

import (
	"context"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// Days are the CMS's calendar days also across daylight saving: 29 March 2026
// has 23 hours in Berlin.
func TestAMappedTableIsRolledUpByTheCMSsDays(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		zone, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		h.Site = &cms.Site{DB: h.DB, FallbackZone: zone, Env: cms.Env{"APP_URL": "https://example.com"}}
		h.Mapped = &Mapping{Table: "visits", At: "seen_at", Visitor: "session", Path: "url"}
		if _, err := h.DB.Exec(
			"CREATE TABLE visits (seen_at BIGINT, session VARCHAR(20), url VARCHAR(200))"); err != nil {
			t.Fatal(err)
		}
		first := time.Date(2026, 3, 29, 0, 0, 0, 0, zone)
		for _, at := range []time.Time{first.Add(-time.Second), first, first.Add(22*time.Hour + 59*time.Minute),
			first.Add(23 * time.Hour)} {
			if _, err := h.DB.Exec(h.DB.Rebind("INSERT INTO visits VALUES (?, 'a', '/x')"), at.Unix()); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // doing it again changes nothing
			if _, err := h.Process(ctx, ProcessPayload{DateRange: &DateRange{"2026-03-28", "2026-03-30"}}); err != nil {
				t.Fatal(err)
			}
		}
		report, err := h.Report(ctx, ReportQuery{Since: "2026-03-28", Until: "2026-03-30"})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][3]int64{{1, 1, 1}, {2, 1, 2}, {1, 1, 1}} {
			if counted(report.Days[i].Figures) != want {
				t.Errorf("%s: %+v, want %+v", report.Days[i].Day, report.Days[i].Figures, want)
			}
		}
	})
}

func TestAMappingIsCheckedBeforeItIsUsed(t *testing.T) {
	for _, m := range []Mapping{{}, {Table: "v; DROP TABLE x", At: "at", Visitor: "v"}, {Table: "v", At: "at"}} {
		if m.check() == nil {
			t.Errorf("%+v was taken", m)
		}
	}
}

// counted are the three counts of figures, without what follows from them.
func counted(f Figures) [3]int64 { return [3]int64{f.Views, f.Visitors, f.Visits} }
