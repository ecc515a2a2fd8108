package schedule

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// CatchUp says what becomes of ticks that nobody was there for.
type CatchUp string

// The policies.
const (
	Skip   CatchUp = "skip"   // they are given up
	Latest CatchUp = "latest" // one job for all of them
	All    CatchUp = "all"    // a job each, up to Entry.Limit
)

// ParseCatchUp reads a policy; "" is latest, and so is "once".
func ParseCatchUp(word string) (CatchUp, error) {
	switch c := CatchUp(word); c {
	case Skip, Latest, All:
		return c, nil
	case "", "once":
		return Latest, nil
	}
	return "", fmt.Errorf("the catch-up policy %q is none of skip, latest, all", word)
}

// Entry is one line of the timetable.
type Entry struct {
	Name string
	// Cron is read by ParseSpec.
	Cron string
	// Kind (Name when empty), Data and Queue make the job.
	Kind  string
	Data  json.RawMessage
	Queue string
	// CatchUp is latest when empty. MaxAge is how old a missed tick may be to be
	// caught up: an hour when 0. Limit bounds policy all: 10 when 0.
	CatchUp CatchUp
	MaxAge  time.Duration
	Limit   int
	// Window is the time of day in which the job may be enqueued: "01:00-05:00";
	// "" is always. A tick outside waits until it opens, as a missed one.
	Window string
	// After makes the entry a fallback: it is enqueued only when no job of this
	// kind was completed within Wait (1 hour) after the tick.
	After string
	Wait  time.Duration
	// Off entries are listed and have no ticks.
	Off bool
}

// late is how far behind its tick a job is still on time under policy skip.
const late = 2 * time.Minute

// line is an entry that was checked.
type line struct {
	Entry
	spec   Spec
	window window
}

func (e Entry) check() (line, error) {
	e.Kind, e.Wait = cmp.Or(e.Kind, e.Name), cmp.Or(e.Wait, time.Hour)
	e.MaxAge, e.Limit = cmp.Or(e.MaxAge, time.Hour), cmp.Or(e.Limit, 10)
	wrong := func(err error) (line, error) { return line{}, fmt.Errorf("schedule entry %q: %w", e.Name, err) }
	if e.Name == "" || len(e.Name) > 191 {
		return wrong(errors.New("a name needs 1 to 191 bytes"))
	}
	policy, err := ParseCatchUp(string(e.CatchUp))
	if err != nil {
		return wrong(err)
	}
	e.CatchUp = policy
	l := line{Entry: e}
	if l.spec, err = ParseSpec(e.Cron); err != nil {
		return wrong(err)
	}
	if l.window, err = parseWindow(e.Window); err != nil {
		return wrong(err)
	}
	if err := l.job().Check(); err != nil {
		return wrong(err)
	}
	return l, nil
}

func (l line) job() jobs.New { return jobs.New{Kind: l.Kind, Queue: l.Queue, Data: l.Data} }

// window is a part of the day in minutes after midnight; from == to is always.
type window struct{ from, to int }

func parseWindow(text string) (window, error) {
	if text == "" {
		return window{}, nil
	}
	var h1, m1, h2, m2 int
	if n, err := fmt.Sscanf(text, "%d:%d-%d:%d", &h1, &m1, &h2, &m2); err != nil || n != 4 ||
		h1 < 0 || h1 > 24 || h2 < 0 || h2 > 24 || m1 < 0 || m1 > 59 || m2 < 0 || m2 > 59 {
		return window{}, fmt.Errorf("the window %q is not like 01:00-05:00", text)
	}
	return window{h1*60 + m1, h2*60 + m2}, nil
}

// open says whether work may begin at a wall-clock time. A window may go over
// midnight.
func (w window) open(t time.Time) bool {
	minute := t.Hour()*60 + t.Minute()
	if w.from <= w.to {
		return w.from == w.to || (minute >= w.from && minute < w.to)
	}
	return minute >= w.from || minute < w.to
}
