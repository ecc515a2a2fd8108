package php

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// A job that is claimed ahead is renewed only when it is old: the journal of a pool that is
// killed meanwhile would have a lease that the row has no more.
func TestWhatIsClaimedAheadIsRenewedLate(t *testing.T) {
	now := time.Now()
	j, err := openJournal(t.TempDir(), "default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.remove() })
	p := &Pool{c: Config{Lease: 90 * time.Second, Now: func() time.Time { return now }}, journal: j,
		held: map[int64]holding{}}
	ahead, inHand := jobs.Lease{ID: 1, Attempt: 1}, jobs.Lease{ID: 2, Attempt: 1}
	if err := j.add([]jobs.Lease{ahead}); err != nil {
		t.Fatal(err)
	}
	p.hold([]Job{{Claimed: jobs.Claimed{Lease: ahead}}, {Claimed: jobs.Claimed{Lease: inHand}}})
	now = now.Add(29 * time.Second)
	if got := p.toRenew(); len(got) != 1 || got[0] != inHand {
		t.Errorf("after 29 s %+v are renewed", got)
	}
	now = now.Add(2 * time.Second)
	if got := p.toRenew(); len(got) != 2 {
		t.Errorf("after 31 s %+v are renewed", got)
	}
}
