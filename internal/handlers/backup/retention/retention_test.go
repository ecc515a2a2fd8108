package retention

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

func full(days float64) Backup {
	return Backup{Started: noon.Add(-time.Duration(days * 24 * float64(time.Hour))), Database: true, Files: true,
		Complete: true, State: Verified}
}

func stay(r Rules, all []Backup) (days []int) {
	for i, d := range r.Decide(all, noon) {
		if d.Keep {
			days = append(days, int(noon.Sub(all[i].Started).Hours()/24))
		}
	}
	return days
}

func TestEachRuleKeepsWhatItNames(t *testing.T) {
	var daily, hourly []Backup
	for n := range 400 {
		daily = append(daily, full(float64(n)))
		hourly = append(hourly, full(float64(n)/24))
	}
	with := func(b Backup, change func(*Backup)) Backup { change(&b); return b }
	failed := func(b *Backup) { b.State = Failed }
	filesOnly := func(b *Backup) { b.Database = false }
	for name, c := range map[string]struct {
		rules Rules
		all   []Backup
		want  []int // days ago
	}{
		"seven days by default": {Rules{}.WithDefaults(), daily[:20], []int{0, 1, 2, 3, 4, 5, 6}},
		"days, weeks, months, years": {Rules{Keep: 3, Weekly: 3, Monthly: 3, Yearly: 2}, daily,
			[]int{0, 1, 2, 9, 31, 59, 90}},
		"one a day counts":   {Rules{Keep: 3}, hourly[:100], []int{0, 0, 1}},
		"nothing young goes": {Rules{Keep: 1, MinAge: 72 * time.Hour}, daily[:6], []int{0, 1, 2}},
		"everything":         {Rules{Keep: -1}, daily[:9], []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		"failed verifications push nothing": {Rules{Keep: 1}, []Backup{with(full(0), failed), with(full(1), failed),
			full(2), full(3)}, []int{0, 2}},
		"failed ones go after a verified": {Rules{Keep: 1}, []Backup{full(0), with(full(1), failed)}, []int{0}},
		"files push no database out": {
			Rules{Keep: 1}, []Backup{with(full(0), filesOnly), with(full(1), filesOnly), full(2)}, []int{0, 2}},
		"a pending one pushes no verified": {
			Rules{Keep: 1}, []Backup{with(full(0), func(b *Backup) { b.State = Pending }), full(1), full(2)},
			[]int{0, 1}},
		"partial ones stay until one follows": {
			Rules{Keep: 1}, []Backup{with(full(0), func(b *Backup) { b.Complete = false }), full(1),
				with(full(2), func(b *Backup) { b.Complete = false })},
			[]int{0, 1}},
		"some tables have their own rule": {
			Rules{Keep: 2}, []Backup{full(0), with(full(1), func(b *Backup) { b.Tables = true }),
				with(full(2), func(b *Backup) { b.Tables = true }),
				with(full(3), func(b *Backup) { b.Tables = true })}, []int{0, 1, 2}},
		"before restores": {Rules{Keep: 1}, []Backup{with(full(0), func(b *Backup) { b.Safety = true }),
			with(full(1), func(b *Backup) { b.Safety = true }), full(2),
			with(full(3), func(b *Backup) { b.Safety = true })}, []int{0, 1, 2}},
		"of others": {Rules{Keep: 1}, []Backup{with(full(0), func(b *Backup) { b.Foreign = true }), full(1), full(2)},
			[]int{0, 1}},
	} {
		if got := stay(c.rules, c.all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v stay, want %v", name, got, c.want)
		}
	}
}

// history is a random list of backups of about half a year.
func history(r *rand.Rand) []Backup {
	all := make([]Backup, r.IntN(60))
	for i := range all {
		b := full(r.Float64() * 200)
		if r.IntN(3) == 0 { // many on few days
			b = full(float64(r.IntN(6)) + r.Float64()/4)
		}
		switch r.IntN(4) {
		case 0:
			b.Database = false
		case 1:
			b.Files = false
		}
		b.State = State(1 + r.IntN(4))
		b.Complete, b.Tables, b.Safety, b.Foreign = r.IntN(6) > 0, r.IntN(8) == 0, r.IntN(8) == 0, r.IntN(8) == 0
		all[i] = b
	}
	return all
}

var parts = []func(Backup) bool{
	func(b Backup) bool { return b.Database },
	func(b Backup) bool { return b.Files },
	func(b Backup) bool { return b.Database && b.Files },
}

func TestTheInvariantsHoldForRandomHistories(t *testing.T) {
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := history(r)
		rules := Rules{Keep: 1 + r.IntN(8), Weekly: r.IntN(4), Monthly: r.IntN(3),
			MinAge: time.Duration(r.IntN(5)) * 24 * time.Hour}
		before := rules.Decide(all, noon)
		for _, holds := range parts {
			newest := -1
			for i, b := range all {
				if b.counts() && b.State == Verified && holds(b) &&
					(newest < 0 || b.Started.After(all[newest].Started)) {
					newest = i
				}
			}
			if newest >= 0 && !before[newest].Keep {
				t.Fatalf("seed %d: the newest verified one goes: %+v", seed, all[newest])
			}
		}
		old := 0
		for i, b := range all {
			if noon.Sub(b.Started) < rules.MinAge && !before[i].Keep {
				t.Fatalf("seed %d: a young one goes: %+v", seed, b)
			}
			if before[i].Keep && !b.Foreign && !b.Safety && noon.Sub(b.Started) >= rules.MinAge {
				old++
			}
		}
		if limit := 3*(rules.Keep+rules.Weekly+rules.Monthly+1) + 2*rules.Keep; old > limit {
			t.Fatalf("seed %d: %d old ones stay, at most %d may", seed, old, limit)
		}
		noPlaceForOthers(t, seed, rules, all, before)
		oneADay(t, seed, rules, all)
	}
}

// noPlaceForOthers: what does not count, or holds another part, removes nothing.
func noPlaceForOthers(t *testing.T, seed uint64, rules Rules, all []Backup, before []Decision) {
	t.Helper()
	more := slices.Clone(all)
	for n := range 12 {
		b := full(float64(n) / 2)
		switch n % 4 {
		case 0:
			b.State = Failed
		case 1:
			b.State = Overdue
		case 2:
			b.Foreign = true
		default:
			b.Database = false // files only
		}
		more = append(more, b)
	}
	after := rules.Decide(more, noon)
	for i, b := range all {
		if b.counts() && b.Database && before[i].Keep && !after[i].Keep && !(b.Files && keptForFilesOnly(before[i])) {
			t.Fatalf("seed %d: %+v goes because of others; it stayed as %v", seed, b, before[i].Reasons)
		}
	}
}

// keptForFilesOnly says whether no rule kept a backup for its database.
func keptForFilesOnly(d Decision) bool {
	return !slices.ContainsFunc(d.Reasons, func(r string) bool { return !strings.HasSuffix(r, "(files)") })
}

// oneADay: fifty more backups of today remove no more than one more does.
func oneADay(t *testing.T, seed uint64, rules Rules, all []Backup) {
	t.Helper()
	one := append(slices.Clone(all), full(0))
	flood := slices.Clone(one)
	for n := range 50 {
		flood = append(flood, full(float64(n)/200))
	}
	a, b := rules.Decide(one, noon), rules.Decide(flood, noon)
	for i := range all {
		if day(all[i].Started) != day(noon) && a[i].Keep && !b[i].Keep {
			t.Fatalf("seed %d: a flood removes %+v", seed, all[i])
		}
	}
}

func TestReasonsNameTheParts(t *testing.T) {
	got := Rules{Keep: 7, MinAge: 72 * time.Hour}.Decide([]Backup{full(0)}, noon)[0].Reasons
	want := []string{"younger than 3 days", "the newest verified one (database and files)",
		"one of the last 7 days (database and files)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestTheForecastComesTrue(t *testing.T) {
	rules := Rules{Keep: 7, Weekly: 4, Monthly: 3, MinAge: 72 * time.Hour}
	var all []Backup
	for n := range 30 {
		all = append(all, full(float64(n)))
	}
	for i, d := range rules.Forecast(all, noon) {
		if d.Keep && (d.Until.IsZero() || !d.Until.After(noon)) || !d.Keep && !d.Until.IsZero() {
			t.Errorf("%s: %+v", all[i].Started, d)
		}
	}
	first := rules.Forecast(all[:1], noon)[0]
	if days := first.Until.Sub(noon).Hours() / 24; days < 60 || days > 100 {
		t.Errorf("the last of March stays for %.0f days as one of three months", days)
	}
	if d := rules.Forecast([]Backup{{Started: noon, Foreign: true}}, noon)[0]; !d.Keep || !d.Until.IsZero() {
		t.Errorf("another installation's: %+v", d)
	}
}
