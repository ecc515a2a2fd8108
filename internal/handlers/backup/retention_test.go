package backup

import (
	"slices"
	"testing"
	"time"
)

func TestRetentionKeepsWhatItsRulesName(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, 31, 3, 0, 0, 0, time.UTC).AddDate(0, 0, -n) }
	one := func(n int, status Status, size int64) Stored {
		return Stored{Sidecar: Sidecar{Header: Header{ID: day(n).Format(time.DateOnly), Started: day(n)}, Status: status, Size: size}}
	}
	var daily []Stored
	for n := range 400 {
		daily = append(daily, one(n, Good, 10))
	}
	limited := one(3, Good, 10)
	limited.Limited = true
	for name, c := range map[string]struct {
		rule Retention
		all  []Stored
		want []int // days ago
	}{
		"default keeps seven":            {Retention{}.withDefaults(), daily[:20], []int{0, 1, 2, 3, 4, 5, 6}},
		"grandfather, father, son":       {Retention{Daily: 3, Weekly: 3, Monthly: 3, Yearly: 2}, daily, []int{0, 1, 2, 9, 31, 59, 90}},
		"size cap takes the oldest":      {Retention{Keep: 7, MaxBytes: 35}, daily[:20], []int{0, 1, 2}},
		"never the newest":               {Retention{Keep: 1, MaxBytes: 5}, daily[:3], []int{0}},
		"−1 keeps all":                   {Retention{Keep: -1}, daily[:9], []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		"partial before a good one goes": {Retention{Keep: 1}, []Stored{one(0, Partial, 1), one(1, Good, 1), one(2, Partial, 1), limited}, []int{0, 1, 3}},
	} {
		stay, leave := c.rule.choose(c.all)
		var got []int
		for _, b := range stay {
			got = append(got, int(day(0).Sub(b.Started).Hours()/24))
		}
		if !slices.Equal(got, c.want) || len(stay)+len(leave) != len(c.all) {
			t.Errorf("%s: %v stay, want %v", name, got, c.want)
		}
	}
}
