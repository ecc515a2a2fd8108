package mail

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Rate is how many recipients may be sent to in each length of time; 0 is as
// many as there are.
type Rate struct{ PerSecond, PerMinute, PerHour, PerDay int }

// Limits bound sending over all workers that share the database. A mail to
// three recipients counts three.
type Limits struct {
	All Rate
	// Domains bound sending to single recipient domains ("gmail.com"); "*"
	// is each domain that is not named.
	Domains map[string]Rate
}

func (l Limits) check() error {
	for _, r := range append(slices.Collect(maps.Values(l.Domains)), l.All) {
		if min(r.PerSecond, r.PerMinute, r.PerHour, r.PerDay) < 0 {
			return errors.New("a mail limit cannot be negative")
		}
	}
	return nil
}

// slots is into how many parts a window is cut. No window of the length of
// the limit ever sees more than the limit, wherever it begins; the price is
// that at most 1/slots of the rate is given away.
const slots = 10

type window struct {
	bucket string
	limit  int
	length time.Duration
}

func (r Rate) windows(name string) []window {
	all := []window{
		{name + "/second", r.PerSecond, time.Second},
		{name + "/minute", r.PerMinute, time.Minute},
		{name + "/hour", r.PerHour, time.Hour},
		{name + "/day", r.PerDay, 24 * time.Hour},
	}
	return slices.DeleteFunc(all, func(w window) bool { return w.limit == 0 })
}

// counts is what a bucket's row holds: how many were let through in each of
// the slots up to slot Last.
type counts struct {
	Last int64          `json:"last"`
	N    [slots + 1]int `json:"n"` // N[0] is slot Last, N[1] the one before, …
}

// at moves the counts on to the slot of nowMillis. A clock that went back
// leaves them where they are, which errs on the safe side.
func (c counts) at(slot int64) counts {
	if slot <= c.Last {
		return c
	}
	moved := counts{Last: slot}
	for i, n := range c.N {
		if to := int64(i) + slot - c.Last; to <= slots {
			moved.N[to] = n
		}
	}
	return moved
}

// remaining says how many more fit now and, when none does, in how many slots one
// will.
func (c counts) remaining(limit int) (int, int64) {
	used := 0
	for _, n := range c.N {
		used += n
	}
	if used < limit {
		return limit - used, 0
	}
	for age := slots; age >= 0; age-- {
		if used -= c.N[age]; used < limit {
			return 0, int64(slots - age + 1)
		}
	}
	return 0, slots + 1
}

func slotMillis(w window) int64 { return w.length.Milliseconds() / slots }

// limitRow is a bucket's row that a batch has locked.
type limitRow struct {
	counts
	now     int64 // the database's time after the lock was won, Unix milliseconds
	changed bool
}

type limitRows map[string]limitRow
