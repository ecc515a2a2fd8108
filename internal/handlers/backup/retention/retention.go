package retention

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// State says what reading a backup back showed.
type State int

// The states of a backup's verification.
const (
	Verified State = iota + 1 // the newest verification succeeded
	Pending                   // not yet due for a verification, or verifications are off
	Overdue                   // a verification is due and there is none
	Failed                    // the newest verification failed
)

// Backup is what the rules look at.
type Backup struct {
	Started         time.Time
	Database, Files bool
	// Complete is true when everything that was asked for is in it.
	Complete bool
	// Tables is true when only some tables were asked for.
	Tables bool
	// Safety is true for what was made before a restore.
	Safety bool
	// Foreign is true when this installation did not make it and trusts no one
	// who did.
	Foreign bool
	State   State
	// Split is true when its archive does not hold all of it: the files are elsewhere.
	Split bool
}

// counts says whether a backup may take a place.
func (b Backup) counts() bool {
	return b.Complete && !b.Tables && !b.Safety && !b.Foreign && (b.State == Verified || b.State == Pending)
}

// Rules say which backups stay. A backup that any rule keeps stays. Days, weeks
// and months are those of UTC.
type Rules struct {
	// Keep is for how many days the newest of the day stays; days without a
	// backup do not count. 7 when nothing is set. −1 keeps everything.
	Keep int
	// Weekly, Monthly and Yearly keep the newest of each of the last weeks,
	// months and years that have one.
	Weekly, Monthly, Yearly int
	// MinAge is the age before which nothing goes; 3 days when nothing is set,
	// none when negative.
	MinAge time.Duration
}

// WithDefaults fills in what is not set.
func (r Rules) WithDefaults() Rules {
	if r.Keep == 0 && r.Weekly+r.Monthly+r.Yearly == 0 {
		r.Keep = 7
	}
	if r.MinAge == 0 {
		r.MinAge = 72 * time.Hour
	}
	return r
}

// Decision says whether a backup stays, and why.
type Decision struct {
	Keep bool `json:"keep"`
	// Reasons are the rules that keep it, for people.
	Reasons []string `json:"reasons,omitempty"`
	// Until is when it goes if from now on one verified backup of everything is
	// made each day. Zero: not within the next two years. Forecast sets it.
	Until time.Time `json:"until,omitzero"`
}

// Decide returns one decision for each backup, in the order given.
func (r Rules) Decide(all []Backup, now time.Time) []Decision {
	d := decider{Rules: r, all: all, now: now, out: make([]Decision, len(all)),
		parts: make([]map[string]string, len(all))}
	for i := range all {
		d.order = append(d.order, i)
	}
	slices.SortStableFunc(d.order, func(a, b int) int {
		return cmp.Compare(all[b].Started.UnixNano(), all[a].Started.UnixNano())
	})
	d.byAge()
	for _, p := range []struct {
		name  string
		holds func(Backup) bool
	}{
		{"database", func(b Backup) bool { return b.Database }},
		{"files", func(b Backup) bool { return b.Files }},
		{both, func(b Backup) bool { return b.Database && b.Files }},
	} {
		d.byPart(p.name, d.newest(func(b Backup) bool { return b.counts() && p.holds(b) }))
	}
	d.byPeriod("some tables",
		d.newest(func(b Backup) bool {
			return b.Tables && b.Complete && !b.Safety && !b.Foreign &&
				b.State != Failed
		}), r.Keep, "day", day)
	d.fullCopy()
	d.safety()
	d.uncounted()
	d.explain()
	return d.out
}

type decider struct {
	Rules
	all   []Backup
	order []int // newest first
	now   time.Time
	out   []Decision
	parts []map[string]string // of each backup: the parts for which a rule keeps it
}

func (d *decider) keep(i int, format string, args ...any) {
	d.out[i].Keep = true
	reason := fmt.Sprintf(format, args...)
	if !slices.Contains(d.out[i].Reasons, reason) {
		d.out[i].Reasons = append(d.out[i].Reasons, reason)
	}
}

// keepFor keeps a backup for one of its parts.
func (d *decider) keepFor(i int, part, rule string) {
	if d.parts[i] == nil {
		d.parts[i] = map[string]string{}
	}
	d.keep(i, "%s", rule)
	parts := d.parts[i][rule]
	switch {
	case parts == "":
		d.parts[i][rule] = part
	case part != both: // what is the newest of each is the newest of both
		d.parts[i][rule] = parts + " and " + part
	}
}

// explain adds to each rule the parts for which it keeps a backup.
func (d *decider) explain() {
	for i, parts := range d.parts {
		for n, rule := range d.out[i].Reasons {
			if p := parts[rule]; p != "" {
				d.out[i].Reasons[n] = rule + " (" + p + ")"
			}
		}
	}
}

const both = "database and files"

// newest are the backups that fit, newest first.
func (d *decider) newest(fits func(Backup) bool) (found []int) {
	for _, i := range d.order {
		if fits(d.all[i]) {
			found = append(found, i)
		}
	}
	return found
}

// byAge keeps what no other rule may remove.
func (d *decider) byAge() {
	for i, b := range d.all {
		switch {
		case b.Foreign:
			d.keep(i, "not made by this installation: delete it by hand")
		case d.Keep < 0:
			d.keep(i, "every backup stays")
		case d.now.Sub(b.Started) < d.MinAge:
			d.keep(i, "younger than %s", hours(d.MinAge))
		}
	}
}

func hours(d time.Duration) string {
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.Round(time.Minute).String()
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// byPart applies the rules to the backups of one part that count.
func (d *decider) byPart(part string, list []int) {
	if len(list) == 0 {
		return
	}
	verified := slices.IndexFunc(list, func(i int) bool { return d.all[i].State == Verified })
	if verified >= 0 {
		d.keepFor(list[verified], part, "the newest verified one")
	} else {
		d.keepFor(list[0], part, "the newest one")
	}
	d.byPeriod(part, list, d.Keep, "day", day)
	d.byPeriod(part, list, d.Weekly, "week", func(t time.Time) string {
		y, w := t.UTC().ISOWeek()
		return fmt.Sprint(y, "-", w)
	})
	d.byPeriod(part, list, d.Monthly, "month", func(t time.Time) string { return t.UTC().Format("2006-01") })
	d.byPeriod(part, list, d.Yearly, "year", func(t time.Time) string { return t.UTC().Format("2006") })
}

// byPeriod keeps the newest of each of the last n periods that have one.
func (d *decider) byPeriod(part string, list []int, n int, unit string, period func(time.Time) string) {
	seen := map[string]bool{}
	for _, i := range list {
		p := period(d.all[i].Started)
		if seen[p] {
			continue
		}
		if len(seen) >= n {
			return
		}
		seen[p] = true
		d.keepFor(i, part, fmt.Sprintf("one of the last %d %ss", n, unit))
	}
}

// fullCopy keeps the newest backup of everything in one archive, where others are not.
func (d *decider) fullCopy() {
	if !slices.ContainsFunc(d.all, func(b Backup) bool { return b.Split }) {
		return
	}
	if full := d.newest(func(b Backup) bool { return b.counts() && b.Database && b.Files && !b.Split }); len(full) > 0 {
		d.keep(full[0], "the newest full copy")
	}
}

// safety keeps what was made before restores: the newest, and those since the
// newest backup that counts.
func (d *decider) safety() {
	counted, newest := false, true
	for _, i := range d.order {
		switch b := d.all[i]; {
		case b.counts():
			counted = true
		case b.Safety && !b.Foreign && (newest || !counted):
			d.keep(i, "made before the last restore")
			newest = false
		}
	}
}

// uncounted keeps what is partial or not verified until a later backup of the
// same parts counts, but not more of them than of good ones.
func (d *decider) uncounted() {
	var database, files bool // a later one that counts holds it
	var open []int
	for _, i := range d.order {
		b := d.all[i]
		switch {
		case b.counts():
			database, files = database || b.Database, files || b.Files
		case b.Safety || b.Foreign || b.Tables && b.State != Failed:
		case b.Database && !database || b.Files && !files:
			open = append(open, i)
		}
	}
	d.byPeriod("no later one is verified yet", open, max(d.Keep, 1), "day", day)
}
