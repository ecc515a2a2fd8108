package php

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestProcessesGoWhereJobsWaitLongest(t *testing.T) {
	busy := func(size int, wait time.Duration) standing {
		return standing{least: 1, most: 8, size: size, wait: wait}
	}
	idle := func(size int) standing { return standing{least: 1, most: 8, size: size, idle: true} }
	const none = 1 << 20
	for _, x := range []struct {
		name       string
		list       []standing
		most, fits int
		want       []int
	}{
		{"nobody waits", []standing{busy(2, 0), busy(1, 0)}, 0, none, []int{2, 1}},
		{"a moment is no waiting", []standing{busy(2, patience/2)}, 0, none, []int{2}},
		{"it grows by half", []standing{busy(4, time.Minute)}, 0, none, []int{6}},
		{"one has two more", []standing{busy(1, time.Minute)}, 0, none, []int{2}},
		{"up to its most", []standing{busy(7, time.Minute)}, 0, none, []int{8}},
		{"idle ones go, one at a time", []standing{idle(5), idle(1)}, 0, none, []int{4, 1}},
		{"what an idle one leaves is another's", []standing{idle(3), busy(1, time.Minute)}, 4, none, []int{2, 2}},
		{"the longest first", []standing{busy(2, 10*time.Second), busy(2, time.Minute)}, 5, none, []int{2, 3}},
		{"no space: one that waits less gives", []standing{busy(3, 10*time.Second), busy(2, time.Minute)}, 5, none,
			[]int{2, 2}},
		{"nearly as long is no reason", []standing{busy(3, 40*time.Second), busy(2, time.Minute)}, 5, none,
			[]int{3, 2}},
		{"nobody gives what it must have", []standing{busy(1, 0), busy(4, time.Minute)}, 5, none, []int{1, 4}},
		{"no memory", []standing{busy(1, 0), busy(4, time.Minute)}, 0, 0, []int{1, 4}},
		{"memory for one", []standing{busy(1, 0), busy(4, time.Minute)}, 0, 1, []int{1, 5}},
		{"too much memory is used", []standing{busy(3, time.Minute), busy(4, time.Hour)}, 0, -1, []int{2, 4}},
	} {
		if got := decide(x.list, x.most, x.fits); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// waits is a Source of which only Waits is asked.
type waits struct {
	Source
	longest time.Duration
}

func (w waits) Waits(context.Context, string) (time.Duration, error) { return w.longest, nil }

// Between two quick jobs a process asks, too: it is free when the queue has no more.
func TestAProcessIsFreeWhenTheQueueIsDrained(t *testing.T) {
	now := time.Now()
	p := &Pool{c: Config{Processes: 1, MaxProcesses: 2, Source: waits{longest: time.Minute},
		Now: func() time.Time { return now }}}
	p.size.Store(2)
	p.kept.Store(2)
	p.wanting.Store(1)
	p.busy.Store(1)
	var free time.Time
	if s := p.stand(t.Context(), &free, time.Second); s.wait != time.Minute || s.idle {
		t.Errorf("with more in the queue: %+v", s)
	}
	p.drained.Store(true)
	for _, idle := range []bool{false, true} {
		if s := p.stand(t.Context(), &free, time.Second); s.wait != 0 || s.idle != idle {
			t.Errorf("with nothing in the queue: %+v", s)
		}
		now = now.Add(time.Second)
	}
	p.drained.Store(false)
	p.busy.Store(0)
	if s := p.stand(t.Context(), &free, time.Second); s.wait != 0 || s.idle {
		t.Errorf("while one starts: %+v", s)
	}
}
