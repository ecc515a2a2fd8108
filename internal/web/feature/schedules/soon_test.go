package schedules

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// In the night in which clocks go back, two o'clock comes twice.
func TestWhatRunsSoonIsSaidAsClocksShowIt(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC).In(berlin) // 02:00 of summer
	rows := soonOf(jobs.ScheduleRecord{Name: "hourly", Soon: []time.Time{first, first.Add(time.Hour),
		first.Add(2 * time.Hour)}})
	if len(rows) != 3 || rows[0].At != "02:00" || rows[1].At != "02:00" || rows[2].At != "03:00" || rows[0].Times != 1 {
		t.Errorf("%+v", rows)
	}
	var often []time.Time
	for i := range 720 {
		often = append(often, first.Add(time.Duration(i)*time.Minute))
	}
	if rows := soonOf(jobs.ScheduleRecord{Name: "often", Soon: often}); len(rows) != 1 || rows[0].Times != 720 ||
		rows[0].At != "02:00" {
		t.Errorf("%+v", rows)
	}
	if rows := soonOf(jobs.ScheduleRecord{Name: "paused"}); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}
