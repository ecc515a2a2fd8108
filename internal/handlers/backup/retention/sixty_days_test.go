package retention

import (
	"slices"
	"testing"
	"time"
)

// days prunes after each of n nightly backups, of which made changes some, and gives the
// days (2026-01-02) that are left. After each prune, what is needed is still there.
func days(t *testing.T, n int, made func(day int, b *Backup)) (left []string) {
	t.Helper()
	rules := Rules{Keep: 7, Weekly: 4, Monthly: 3, MinAge: 72 * time.Hour}
	var kept []Backup
	for i := range n {
		now := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC).AddDate(0, 0, i)
		b := Backup{Started: now, Database: true, Files: true, Complete: true, State: Verified}
		made(i, &b)
		all := append([]Backup{b}, kept...)
		decisions := rules.Decide(all, now.Add(time.Minute))
		kept = nil
		for j, d := range decisions {
			if d.Keep {
				kept = append(kept, all[j])
				continue
			}
			later := func(o Backup) bool {
				return o.Started.After(all[j].Started) && o.State == Verified && o.Complete &&
					o.Database == all[j].Database && o.Files == all[j].Files
			}
			if all[j].State == Verified && !slices.ContainsFunc(all, later) {
				t.Errorf("day %d: the verified backup of %s is removed, and no later one of its parts is verified", i,
					day(all[j].Started))
			}
		}
	}
	for _, b := range kept {
		left = append(left, day(b.Started))
	}
	return left
}

// Sixty nights of the defaults, counted by hand from docs/backup.md: seven days, the
// newest of four weeks (Sundays) and of three months.
func TestSixtyNightsLeaveWhatIsDocumented(t *testing.T) {
	got := days(t, 60, func(int, *Backup) {}) // the last one is of 1 March 2026, a Sunday
	want := []string{"2026-03-01", "2026-02-28", "2026-02-27", "2026-02-26", "2026-02-25", "2026-02-24", "2026-02-23",
		"2026-02-22", "2026-02-15", "2026-02-08", "2026-01-31"}
	if !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}

// From the 40th night on no verification succeeds: the verified ones of before stay, and
// of the others at most as many days as the rule has.
func TestWithoutVerificationsTheVerifiedOnesStay(t *testing.T) {
	for name, state := range map[string]State{"failed": Failed, "overdue": Overdue} {
		got := days(t, 60, func(i int, b *Backup) {
			if i >= 40 {
				b.State = state
			}
		})
		// 9 February is the 40th and last verified one.
		for _, need := range []string{"2026-02-09", "2026-02-08", "2026-02-07", "2026-02-06", "2026-02-05",
			"2026-02-04", "2026-02-03", "2026-01-31"} {
			if !slices.Contains(got, need) {
				t.Errorf("%s: %s is not left: %v", name, need, got)
			}
		}
		unverified := slices.DeleteFunc(slices.Clone(got), func(d string) bool { return d <= "2026-02-09" })
		if len(unverified) != 7 {
			t.Errorf("%s: %d of those without a verification are left: %v", name, len(unverified), unverified)
		}
	}
}

// Only the files are backed up from the 20th night on: the database's last backup stays.
func TestFilesAloneLeaveTheDatabasesBackup(t *testing.T) {
	got := days(t, 60, func(i int, b *Backup) { b.Database = i < 20 })
	if !slices.Contains(got, "2026-01-20") {
		t.Errorf("the last backup of the database is not left: %v", got)
	}
}
