package publish

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// When looks are due: at once after a call of the feed, though not before the editor's
// save is complete; by the clock where no feed works; and never more than their share.
func TestWhenAWatcherLooks(t *testing.T) {
	n := newNewsroom(t, jobstest.SQLite, "")
	n.handler.c.Probe = time.Second
	w := n.handler.NewWatcher(Calls{})
	w.full, w.probe = noon.Add(time.Minute), noon.Add(time.Second)
	expect := func(what string, want time.Duration) {
		t.Helper()
		if got := w.next(noon); got != want {
			t.Errorf("%s: the next look is in %v, want %v", what, got, want)
		}
	}
	expect("without the lease and without a call", time.Minute)
	w.holder = true
	expect("without a feed", time.Second)
	w.watched = noon
	expect("beside a feed", time.Minute)
	w.first, w.last = noon, noon
	expect("after a call", settle)
	w.last = noon.Add(450 * time.Millisecond)
	expect("while calls go on", settleMost)
	w.holder = false
	expect("without the lease", settleMost+beside)
	w.holder, w.free = true, noon.Add(3*time.Second)
	expect("after a look that took long", 3*time.Second)

	w.first, w.free = time.Time{}, time.Time{}
	w.cost = 60 * time.Millisecond
	w.plan(noon, noon.Add(100*time.Millisecond), true, false)
	if took := 100 * time.Millisecond; w.free.Sub(noon) != took+calledShare*took ||
		w.probe.Sub(noon) != took+timedShare*took || w.full.Sub(noon) != took+time.Minute {
		t.Errorf("after 0.1 s: called %v, probe %v, full %v", w.free.Sub(noon), w.probe.Sub(noon), w.full.Sub(noon))
	}
	n.handler.c.Night = func(time.Time) bool { return true }
	w.plan(noon, noon, false, false)
	if w.probe.Sub(noon) != nightly*time.Second {
		t.Errorf("at night a probe waits %v", w.probe.Sub(noon))
	}
	w.first = noon
	w.plan(noon, noon, false, true)
	if w.first.IsZero() || w.free.Sub(noon) != afterFailure {
		t.Error("a look that failed has answered the call")
	}
}

// The rows that a feed names are renewed before the site is compared, by the instance that
// has the lease; what it cannot renew, the comparison finds.
func TestNamedRows(t *testing.T) {
	n := newNewsroom(t, jobstest.SQLite, "")
	var asked, named []string
	n.handler.c.Edited = func(_ context.Context, rows []string) ([]jobs.Spec, error) {
		asked = append(asked, rows...)
		if rows[0] == "posts:2" {
			return nil, errors.New("unknown")
		}
		return []jobs.Spec{sitemap.New(struct{}{}).Unique("row")}, nil
	}
	n.watcher.calls.Rows = func() (rows []string) {
		rows, named = named, nil
		return rows
	}
	n.look()
	call := func(rows ...string) {
		named = rows
		n.watcher.first, n.watcher.last = n.now, n.now
		n.now = n.now.Add(time.Minute)
		n.watcher.turn(context.Background())
	}
	call("posts:1")
	call("posts:2")
	call()
	if len(asked) != 2 || asked[0] != "posts:1" {
		t.Errorf("renewed: %v", asked)
	}
	var jobs int
	if err := n.db.Get(&jobs, "SELECT COUNT(*) FROM jobs"); err != nil || jobs != 1 {
		t.Errorf("%d jobs, %v", jobs, err)
	}
	n.sql("UPDATE cmsjobs_watch SET holder = 'another'")
	n.watcher.holder = false
	n.watcher.full = n.now.Add(time.Hour)
	call("posts:3")
	if len(asked) != 2 || named != nil {
		t.Errorf("without the lease it renewed %v, and left %v", asked, named)
	}
}

// A feed that did not tell of a change is not relied on until it tells of one.
func TestAFeedThatMissedAnEdit(t *testing.T) {
	n := newNewsroom(t, jobstest.SQLite, "")
	n.handler.c.Probe = time.Second
	n.look()
	n.watcher.watched = n.now
	edit := func(id int) {
		n.sql("INSERT INTO posts (id, name, status, created_at, updated_at) VALUES (?, 'A post', 'published', "+
			"'2026-01-01 00:00:00', '2026-01-01 00:00:00')", id)
	}
	edit(1)
	n.watcher.full = n.now
	n.watcher.turn(context.Background())
	if !n.watcher.probing(n.now) {
		t.Error("the feed missed an edit, and nobody looks for the next")
	}
	edit(2)
	n.watcher.first, n.watcher.last, n.now = n.now, n.now, n.now.Add(time.Second)
	n.watcher.watched = n.now
	n.watcher.turn(context.Background())
	if n.watcher.probing(n.now) {
		t.Error("the feed reported an edit, and is not relied on")
	}
}
