package health

import (
	"cmp"
	"slices"
	"sync"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Names of queues come from rows: a program that may write one could make series
// without end. maxQueueLabels have their own, the rest is one together.
const (
	maxQueueLabels = 50
	otherLabel     = "other"
)

// labels are the names that came first.
type labels struct {
	mu   sync.Mutex
	have map[string]bool
}

func (l *labels) of(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.have[name] {
		return name
	}
	if len(l.have) >= maxQueueLabels {
		return otherLabel
	}
	if l.have == nil {
		l.have = map[string]bool{}
	}
	l.have[name] = true
	return name
}

// fewQueues are the queues with the most jobs, and all others as one; more are those
// that the figures only count together.
func fewQueues(list []jobs.QueueStats, more jobs.QueueStats) []jobs.QueueStats {
	if more.Waiting()+more.Processing > 0 {
		list = append(slices.Clone(list), more)
		list[len(list)-1].Queue = otherLabel
	}
	if len(list) <= maxQueueLabels {
		return list
	}
	all := func(s jobs.QueueStats) int64 { return s.Waiting() + s.Processing }
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b jobs.QueueStats) int { return cmp.Compare(all(b), all(a)) })
	few := slices.Clone(list[:maxQueueLabels])
	others := list[maxQueueLabels:]
	// a queue that has this very name
	if i := slices.IndexFunc(few, func(s jobs.QueueStats) bool { return s.Queue == otherLabel }); i >= 0 {
		others = append(others, few[i])
		few = slices.Delete(few, i, i+1)
	}
	rest := jobs.QueueStats{Queue: otherLabel}
	for _, s := range others {
		rest.Queued += s.Queued
		rest.Delayed += s.Delayed
		rest.Processing += s.Processing
		rest.Foreign += s.Foreign
		rest.PHPProcesses += s.PHPProcesses
		rest.Oldest = max(rest.Oldest, s.Oldest)
	}
	return append(few, rest)
}
