package overview

import (
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// The levels of health, best first.
const (
	green = iota
	yellow
	red
)

// cause is one thing that is not as it should be, as a sentence, and the page
// where something can be done about it.
type cause struct {
	Level int
	Text  string
	Href  string
	// Detail, Since and Fix are there for conditions.
	Detail string
	Since  time.Time
	Fix    string
	// Chapter is the place of the manual about it; "" is none.
	Chapter string
	// Action repairs it, or leads to where it can be done; nil is neither.
	Action *web.Action
}

// healthStatus answers: is anything working?
type healthStatus struct {
	Level  int
	Causes []cause // worst first
}

// Class is the level's look.
func (v healthStatus) Class() string { return [...]string{"ok", "warn", "bad"}[v.Level] }

// Icon is the level's.
func (v healthStatus) Icon() string { return [...]string{"check", "warning", "warning"}[v.Level] }

// Class is the level's look.
func (c cause) Class() string { return healthStatus{Level: c.Level}.Class() }

// Word is the level's name in keys and classes.
func (v healthStatus) Word() string { return [...]string{"green", "yellow", "red"}[v.Level] }

// healthInputs is what the status is made from; parts that are not configured are nil.
type healthInputs struct {
	now        time.Time
	lang       locale.Printer
	failing    []string // checks of /readyz
	stats      jobs.Stats
	workers    []jobs.WorkerRecord
	hasWorkers bool
	lastHour   jobs.Throughput // sums, without averages
	conditions []web.Condition
	schedules  []jobs.ScheduleRecord
	warnings   []web.Warning // of features
	disabled   bool
	ready      bool // all of it was there in time
	may        func(web.Action) bool
}

func (s healthInputs) evaluate() healthStatus {
	var v healthStatus
	add := func(level int, href, key string, args ...any) *cause {
		v.Causes = append(v.Causes, cause{Level: level, Text: s.lang.Text(key, args...), Href: href,
			Action: s.show(href)})
		v.Level = max(v.Level, level)
		return &v.Causes[len(v.Causes)-1]
	}
	for _, x := range s.conditions {
		if x.Active {
			level := map[bool]int{true: red, false: yellow}[x.Severity == web.Failing]
			key := "condition." + x.Name
			v.Causes = append(v.Causes, cause{level, s.lang.Text(key), x.Page, x.Detail, x.Since,
				s.lang.Text(key + ".fix"), web.ConditionChapter(x.Name), s.fix(x)})
			v.Level = max(v.Level, level)
		}
	}
	for _, name := range s.failing {
		add(red, "/readyz", "health.check", name)
	}
	if s.disabled {
		add(yellow, "/admin/settings", "health.disabled")
	}
	s.work(add)
	for _, e := range s.schedules {
		if e.Last != nil && e.Last.Outcome == "missed" {
			add(yellow, "/admin/schedules", "health.missed", e.Name)
		}
	}
	for _, w := range s.warnings {
		if !s.holds(w.Condition) {
			add(yellow, w.Path, w.Key)
		}
	}
	slices.SortStableFunc(v.Causes, func(a, b cause) int { return b.Level - a.Level })
	return v
}

// work judges workers, waiting and failures.
func (s healthInputs) work(add func(int, string, string, ...any) *cause) {
	live := 0
	for _, w := range s.workers {
		if w.Alive && w.RunsTypes() {
			live++
		}
	}
	if s.hasWorkers && live == 0 && !s.disabled && !s.holds("no_worker") {
		add(yellow, "/admin/workers", "health.idle")
	}
	for _, q := range s.stats.Queues {
		if q.Paused {
			add(yellow, "/admin/queues", "health.paused", q.Queue, q.Queued).Action = s.resume(q.Queue)
		}
	}
	if h := s.lastHour; h.FailedAttempts > 0 && !s.holds("failure_rate") {
		href := "/admin/failed"
		if h.Failed == 0 { // the page of failed jobs shows none of them
			href = "/admin/jobs?status=queued"
		}
		all := format.Number(h.FailedAttempts + h.Completed)
		if h.Failed >= h.FailedAttempts {
			add(yellow, href, "health.failed_all", format.Number(h.FailedAttempts), all)
		} else {
			add(yellow, href, "health.failed", format.Number(h.FailedAttempts), all, format.Number(h.Failed))
		}
	}
}

func (s healthInputs) holds(name string) bool {
	return slices.ContainsFunc(s.conditions, func(x web.Condition) bool { return x.Active && x.Name == name })
}
