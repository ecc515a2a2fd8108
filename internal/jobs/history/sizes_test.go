package history

import (
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// TestSizesAreKeptByDay measures twice a day over two days, and a year later.
func TestSizesAreKeptByDay(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			f := openFixture(t, v, v.Database(t))
			if _, ever, err := f.SizesAge(bg); ever || err != nil {
				t.Errorf("measured before: %v %v", ever, err)
			}
			noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
			f.tables.Options.DatabaseClock = func() time.Time { return noon }
			for i, bytes := range []int64{10, 20, 30} {
				if err := f.KeepSizes(bg, map[string]int64{"logs": bytes, "table": 5}); err != nil {
					t.Fatal(err)
				}
				if noon = noon.Add(time.Hour); i == 1 {
					noon = noon.Add(22 * time.Hour)
				}
			}
			list, err := f.Sizes(bg, noon.AddDate(0, 0, -3))
			want := []Size{{"2026-11-21", "logs", 20}, {"2026-11-21", "table", 5}, {"2026-11-22", "logs", 30},
				{"2026-11-22", "table", 5}}
			if err != nil || !slices.Equal(list, want) {
				t.Errorf("Sizes = %v, %v", list, err)
			}
			if age, ever, err := f.SizesAge(bg); age != time.Hour || !ever || err != nil {
				t.Errorf("measured %s ago, %v, %v", age, ever, err)
			}
			noon = noon.AddDate(1, 2, 0)
			if err := f.KeepSizes(bg, map[string]int64{"logs": 1}); err != nil {
				t.Fatal(err)
			}
			if list, err := f.Sizes(bg, time.Time{}.AddDate(1, 0, 0)); err != nil || len(list) != 1 {
				t.Errorf("after a year: %v, %v", list, err)
			}
		})
	}
}
