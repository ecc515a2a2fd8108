package queue

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// Processes that differ in their types, queues or state work on the same rows: each
// job is claimed, once, and soon.
func TestProcessesThatDifferShareAQueue(t *testing.T) {
	cases := []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"an old and a new version", oldAndNewVersion},
		{"a paused queue", pausedQueue},
		{"a type at its limit", typeAtItsLimit},
		{"two orders of queues", twoOrdersOfQueues},
		{"a retry without a delay", retryWithoutDelay},
		{"a cursor that is not used", unusedCursor},
	}
	for _, engine := range jobstest.Engines() {
		for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
			v := tablestest.Variant{Engine: engine, Layout: layout}
			t.Run(v.String(), func(t *testing.T) {
				db := v.Database(t)
				for _, c := range cases {
					t.Run(c.name, func(t *testing.T) { c.test(t, openFixture(t, v, db)) })
				}
			})
		}
	}
}

// withOneTypeMore is a process of a newer version.
func (f *fixture) withOneTypeMore(name string) *Store {
	o := f.Options()
	jobs.Handle(o.Registry, jobs.Kind[json.RawMessage]{Name: name},
		func(context.Context, jobs.Job, json.RawMessage) error { return nil })
	return open1(f.T, f.DB, o)
}

// claimIn is one call of Claim that reads a block.
func (f *fixture) claimIn(s *Store, limit, soon int, queues ...string) []jobs.Claimed {
	f.T.Helper()
	ask := askOne
	ask.Limit, ask.Soon, ask.Queues = limit, soon, queues
	got, err := s.Claim(bg, ask)
	if err != nil {
		f.T.Fatal(err)
	}
	return got
}

// noRescan keeps a process from looking before the cursor.
func (f *fixture) noRescan(s *Store) {
	for _, l := range s.cursors {
		l.next = f.tables.Options.Clock().Add(time.Hour)
	}
}

// seen counts claims by row.
type seen map[int64]int

func (n seen) note(t *testing.T, got []jobs.Claimed) {
	t.Helper()
	for _, c := range got {
		if n[c.Job.ID]++; n[c.Job.ID] > 1 {
			t.Errorf("row %d is claimed %d times", c.Job.ID, n[c.Job.ID])
		}
	}
}

// A rolling deploy: the versions have a cursor each. The old ones die with rows in
// their blocks, and the new one needs no rescan to have them.
func oldAndNewVersion(t *testing.T, f *fixture) {
	const added = `{"type":"shop.resize","data":{}}`
	team := []*Store{f.Store, f.withOneTypeMore("shop.resize"), f.another()}
	f.MustEnqueue(numbered(20)...)
	f.InsertRaw("default", added)
	f.MustEnqueue(numbered(20)...)
	n := seen{}
	for i := range 12 {
		got := f.claimIn(team[i%3], 2, 3, "default")
		n.note(t, got)
		if len(got) != 2 {
			t.Errorf("claim %d is of %d jobs, want 2", i, len(got))
		}
	}
	updated := team[1]
	f.noRescan(updated)
	n.note(t, f.claimIn(updated, 50, 0, "default"))
	if len(n) != 41 {
		t.Errorf("%d of 41 jobs are claimed", len(n))
	}
	f.InsertRaw("default", added)
	n.note(t, f.claimIn(f.Store, 5, 0, "default"))
	updated.NoteArrival("default")
	if got := f.claimIn(updated, 5, 0, "default"); len(got) != 1 || got[0].Job.Type != "shop.resize" {
		t.Errorf("the new version claims %+v, want the job that only it can run", got)
	}
}

// A queue is paused while a process has a block of it: nothing is lost, and the order
// is the same when it goes on.
func pausedQueue(t *testing.T, f *fixture) {
	other, n := f.another(), seen{}
	receipts := f.MustEnqueue(numbered(6)...)
	n.note(t, f.claimIn(f.Store, 1, 3, "default"))
	n.note(t, f.claimIn(other, 1, 0, "default"))
	for range 5 {
		f.Clock.Lengths += 10 * time.Second
		n.note(t, f.claimIn(f.Store, 1, 0, "cmsjobs"))
		n.note(t, f.claimIn(other, 1, 0, "cmsjobs"))
	}
	f.MustEnqueue(numbered(2)...)
	for i := range 6 {
		got := f.claimIn([]*Store{f.Store, other}[i%2], 1, 0, "cmsjobs", "default")
		if n.note(t, got); i == 0 && (len(got) != 1 || got[0].Job.ID != receipts[1].ID) {
			t.Errorf("claimed %+v when the queue goes on, want the second", got)
		}
		f.Clock.Lengths += time.Second
	}
	if len(n) != 8 {
		t.Errorf("%d of 8 jobs are claimed", len(n))
	}
}

// A block has rows that their type's limit refuses: those behind them are claimed, and
// when permits come free another process has the refused ones.
func typeAtItsLimit(t *testing.T, f *fixture) {
	var list []jobs.Spec
	for range 4 {
		list = append(list, tablestest.Limited.New(json.RawMessage(`{}`)))
	}
	f.MustEnqueue(append(list, numbered(2)...)...)
	held := f.claimIn(f.Store, 6, 0, "default")
	if len(held) != 4 {
		t.Fatalf("claimed %d jobs, want two of the limited type and two others", len(held))
	}
	other := f.another()
	if got := f.claimIn(other, 6, 0, "default"); len(got) != 0 {
		t.Fatalf("another claimed %+v above the limit", got)
	}
	f.MustSettle(tablestest.End(held[0], jobs.Completed), tablestest.End(held[1], jobs.Completed))
	n := seen{}
	for range 6 {
		f.Clock.Lengths, f.Clock.Ahead = f.Clock.Lengths+time.Second, f.Clock.Ahead+time.Second
		n.note(t, f.claimIn(other, 6, 0, "default"))
	}
	if len(n) != 2 {
		t.Errorf("another process has %d of the 2 jobs that were refused", len(n))
	}
}

// Each process has its own queue first, and takes from the other when that is empty.
func twoOrdersOfQueues(t *testing.T, f *fixture) {
	for _, queue := range []string{"a", "b"} {
		list := numbered(3)
		for i := range list {
			list[i].Queue = queue
		}
		f.MustEnqueue(list...)
	}
	other, n := f.another(), seen{}
	for _, c := range []struct {
		s      *Store
		limit  int
		queues []string
	}{{f.Store, 2, []string{"a", "b"}}, {other, 2, []string{"b", "a"}}, {other, 2, []string{"b", "a"}}} {
		got := f.claimIn(c.s, c.limit, 0, c.queues...)
		if n.note(t, got); len(got) == 0 || got[0].Job.Queue != c.queues[0] {
			t.Errorf("claimed %+v, want %s first", got, c.queues[0])
		}
	}
	if len(n) != 6 {
		t.Errorf("%d of 6 jobs are claimed", len(n))
	}
}

// A process that does not rescan retries a job at once: it claims it itself.
func retryWithoutDelay(t *testing.T, f *fixture) {
	if f.Variant.Layout == tables.Extended {
		t.Skip("within its second the job may stand before the cursor: a rescan finds it")
	}
	f.MustEnqueue(numbered(2)...)
	other, held := f.another(), f.claimIn(f.Store, 1, 0, "default")
	f.claimIn(other, 1, 0, "default")
	f.noRescan(f.Store)
	f.MustSettle(tablestest.End(held[0], jobs.Retried))
	got := f.claimIn(f.Store, 1, 0, "default")
	if len(got) != 1 || got[0].Job.ID != held[0].Job.ID || got[0].Job.Attempt != 2 {
		t.Fatalf("claimed %+v, want the second attempt", got)
	}
	f.MustSettle(tablestest.End(got[0], jobs.Retried))
	if got := f.ClaimBy(other, 1); len(got) != 1 {
		t.Fatalf("another claimed %+v, want the third attempt", got)
	}
	for range releasedTries { // the process that released the job does not look for it for ever
		f.noRescan(f.Store)
		f.claimIn(f.Store, 1, 0, "default")
		f.Clock.Lengths += pendingRest
	}
	if l := f.cursorOf("default", 0); len(l.pending.due) > 0 {
		t.Errorf("a job that another process has is looked for after %d tries", releasedTries)
	}
}

// A cursor that nobody used for a month is removed; one that is used stays. Reading
// begins again, and nothing is claimed twice.
func unusedCursor(t *testing.T, f *fixture) {
	const month = 30 * 24 * time.Hour
	prune := func(want int) {
		t.Helper()
		if err := f.PruneCursors(bg, month); err != nil {
			t.Fatal(err)
		}
		if n := f.CountRows("SELECT COUNT(*) FROM cmsjobs_cursors"); n != want {
			t.Errorf("%d cursors, want %d", n, want)
		}
	}
	n := seen{}
	run := func(want int) {
		t.Helper()
		got := f.claimIn(f.Store, 5, 0, "default")
		if n.note(t, got); len(got) != want {
			t.Errorf("claimed %d jobs, want %d", len(got), want)
		}
		for _, c := range got {
			f.MustSettle(tablestest.End(c, jobs.Completed))
		}
	}
	f.MustEnqueue(numbered(3)...)
	run(3)
	f.MustEnqueue(numbered(1)...)
	prune(1)
	f.Clock.Ahead = month + time.Hour
	prune(0)
	run(1)
	for range 3 { // it is the rescanner
		f.MustEnqueue(numbered(1)...)
		f.Clock.Lengths, f.Clock.Ahead = f.Clock.Lengths+time.Second, f.Clock.Ahead+20*24*time.Hour
		run(1)
		prune(1)
	}
}
