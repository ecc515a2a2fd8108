package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ending is how a job is meant to end.
type ending int

const (
	done   ending = iota // completed, its effect seen
	failed               // in failed_jobs, because its other side always refuses
	either               // nobody can know: the answer was withheld after the effect
)

// asked is a job that somebody wanted.
type asked struct {
	kind  string
	due   time.Time
	acked bool // the INSERT was answered; otherwise nobody knows whether it is there
	want  ending
	rare  bool // its queue is emptied by workers that are not always there
}

// seen is an effect that an observer outside of everything that fails saw.
type seen struct {
	key      int
	at       time.Time
	accepted bool // it answered that all is well
}

// run is a line of the service's own history.
type run struct {
	key, attempt int
	outcome      string
	started      time.Time
	ended        time.Time
	toldToStop   bool // released at the end of its worker's grace
}

// fault is harm that was done, and until when it may be felt.
type fault struct {
	name      string
	at, until time.Time
	kind      string // only jobs of it feel anything; "" is all
	delays    bool   // work may come later, and nothing may be repeated
}

// history is what the judge reads.
type history struct {
	asked  map[int]asked
	seen   []seen
	runs   []run
	waits  map[int]bool // rows that are still in the queue
	failed map[int]bool // rows in failed_jobs
	faults []fault
	// observed are the kinds whose effects are in seen; unsure those whose jobs
	// may fail permanently after a fault, because nobody knows whether they took effect;
	// onlyOnce those whose effect is never repeated, fault or not; queueing those
	// that wait for each other.
	observed, unsure, onlyOnce, queueing map[string]bool
	patience                             time.Duration // how late is late without a fault
}

// report is what the judge says. Each line of its lists is one violation.
type report struct {
	Acked, Unknown, Failed int
	Unreasoned             int // failed without a reason, and so in Wrong
	Lost, Doubled, Late    []string
	Wrong                  []string      // ended otherwise than it was meant to
	Again                  int           // runs and effects that a fault explains
	Median, Most, Longest  time.Duration // from falling due to the start; Most is 99 %
}

func (v report) good() bool {
	return len(v.Lost)+len(v.Doubled)+len(v.Late)+len(v.Wrong) == 0
}

// judge reads a history. Nothing is lost: an acknowledged job ended. Nothing is
// doubled: each effect, and each attempt that left no line in the history, lies
// behind a fault within its life. Nothing is late: a job starts soon after it
// fell due, or a fault lies between.
func judge(h history) report {
	v := report{}
	runs, effects := map[int][]run{}, map[int][]seen{}
	for _, r := range h.runs {
		runs[r.key] = append(runs[r.key], r)
	}
	for _, s := range h.seen {
		effects[s.key] = append(effects[s.key], s)
	}
	var waits []time.Duration
	for _, key := range slices.Sorted(maps.Keys(h.asked)) {
		c := trial{history: &h, report: &v, key: key, asked: h.asked[key], runs: runs[key], effects: effects[key]}
		slices.SortFunc(c.runs, func(a, b run) int { return a.ended.Compare(b.ended) })
		slices.SortFunc(c.effects, func(a, b seen) int { return a.at.Compare(b.at) })
		c.end()
		c.twice()
		if wait, started := c.late(); started {
			waits = append(waits, wait)
		}
	}
	if slices.Sort(waits); len(waits) > 0 {
		share := func(x float64) time.Duration { return waits[int(float64(len(waits)-1)*x)].Round(time.Millisecond) }
		v.Median, v.Most, v.Longest = share(0.5), share(0.99), share(1)
	}
	return v
}

// trial is the judge's look at one job.
type trial struct {
	*history
	report  *report
	key     int
	asked   asked
	runs    []run
	effects []seen
}

func (c *trial) name() string { return fmt.Sprintf("%s %d", c.asked.kind, c.key) }

// end holds how the job ended against how it was meant to end.
func (c *trial) end() {
	completed := slices.ContainsFunc(c.runs, func(r run) bool { return r.outcome == "completed" })
	there := completed || c.failed[c.key]
	if c.asked.acked {
		c.report.Acked++
	} else if c.report.Unknown++; !there && !c.waits[c.key] {
		return // it never came into the queue
	}
	if !there {
		where := map[bool]string{true: " is still in the queue", false: " is gone"}[c.waits[c.key]]
		c.report.Lost = append(c.report.Lost, c.name()+where)
		return
	}
	c.meant(completed)
	if c.failed[c.key] {
		c.report.Failed++
	}
}

// meant holds an end against what was to come of the job.
func (c *trial) meant(completed bool) {
	switch {
	case completed && c.asked.want == failed:
		c.report.Wrong = append(c.report.Wrong, c.name()+" was completed, although its other side refused it")
	case completed && c.asked.want == done && c.unseen():
		c.report.Lost = append(c.report.Lost, c.name()+" is completed, but its effect was never seen")
	case c.failed[c.key] && c.asked.want == done && !c.excused():
		c.report.Unreasoned++
		c.report.Wrong = append(c.report.Wrong, c.name()+" failed for good without a reason")
	}
}

// unseen says that the job's effect is watched, and was not accepted.
func (c *trial) unseen() bool {
	return c.observed[c.asked.kind] && !slices.ContainsFunc(c.effects, func(s seen) bool { return s.accepted })
}

// excused says that a fault that was injected explains why the job failed.
func (c *trial) excused() bool {
	return c.unsure[c.asked.kind] && c.explained(c.asked.due, c.lastEnd(), true)
}

func (c *trial) lastEnd() time.Time {
	if len(c.runs) == 0 {
		return c.asked.due.Add(c.patience)
	}
	return c.runs[len(c.runs)-1].ended
}

// twice looks for what happened more than once.
func (c *trial) twice() {
	var before *seen
	for i, e := range c.effects {
		if before != nil {
			c.repeated(before.at, e.at)
		}
		if e.accepted {
			before = &c.effects[i]
		}
	}
	ends := 0
	for i, r := range c.runs {
		if r.outcome == "completed" {
			ends++
		}
		// Attempts count starts. One that left no line in the history was cut off.
		last, began := 0, c.asked.due
		if i > 0 {
			last, began = c.runs[i-1].attempt, c.runs[i-1].ended
			if c.runs[i-1].outcome == "released" {
				last-- // released: the next start has its number
			}
		}
		for range max(0, r.attempt-last-1) {
			c.again(began, r.started, fmt.Sprintf("started before attempt %d, and nobody knows what became of it",
				r.attempt), false)
		}
		if r.outcome == "crashed" { // the service itself says that a start ended without a word
			c.again(began, r.ended, fmt.Sprintf("lost attempt %d on the way", r.attempt), false)
		}
	}
	if ends > 1 {
		c.report.Doubled = append(c.report.Doubled, c.name()+" was completed twice")
	}
}

// repeated judges an effect that came again. A run that was released at the
// end of the grace may have had its effect already: promise P9 says so, and no
// more than that is promised.
func (c *trial) repeated(from, to time.Time) {
	never := c.onlyOnce[c.asked.kind]
	stopped := slices.ContainsFunc(c.runs, func(r run) bool {
		return r.toldToStop && !r.started.After(from) && !r.ended.Before(from) && !r.ended.After(to)
	})
	if stopped && !never {
		c.report.Again++
		return
	}
	c.again(from, to, "had its effect twice", never)
}

// again counts a repetition that a fault explains, and notes any other.
func (c *trial) again(from, to time.Time, what string, never bool) {
	if !never && c.repeats(from, to) {
		c.report.Again++
		return
	}
	c.report.Doubled = append(c.report.Doubled, fmt.Sprintf("%s %s, between %s and %s", c.name(), what,
		from.Format(clock), to.Format(clock)))
}

const clock = "15:04:05.000"

// late returns how long the job waited from falling due to its first start.
func (c *trial) late() (wait time.Duration, started bool) {
	var start time.Time
	switch {
	case len(c.effects) > 0:
		start = c.effects[0].at
	case len(c.runs) > 0:
		start = c.runs[0].started
	}
	if start.IsZero() || c.queueing[c.asked.kind] || c.asked.rare {
		return 0, false
	}
	wait = start.Sub(c.asked.due)
	if wait > c.patience && !c.explained(c.asked.due, start, true) {
		c.report.Late = append(c.report.Late, fmt.Sprintf("%s started %v after it fell due at %s", c.name(),
			wait.Round(time.Millisecond), c.asked.due.Format(clock)))
	}
	return wait, true
}

// repeats says whether a fault that may repeat a job was felt between two moments.
func (c *trial) repeats(from, to time.Time) bool { return c.explained(from, to, false) }

// explained says whether a fault was felt between two moments, with those that
// only delay or without.
func (c *trial) explained(from, to time.Time, delays bool) bool {
	return slices.ContainsFunc(c.faults, func(f fault) bool {
		return !f.until.Before(from) && !f.at.After(to) && (delays || !f.delays) &&
			(f.kind == "" || f.kind == c.asked.kind)
	})
}

// tally counts faults by name.
func tally(faults []fault) string {
	counts := map[string]int{}
	for _, f := range faults {
		counts[f.name]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Compare(a, b) })
	text := ""
	for _, name := range names {
		text += fmt.Sprintf(", %s %d", name, counts[name])
	}
	if text == "" {
		return "none"
	}
	return text[2:]
}
