package memory

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
)

// Resident is what this process occupies, in bytes: the kernel's figure
// on Linux, Go's own elsewhere.
func Resident() int64 {
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		if args := strings.Fields(string(data)); len(args) > 1 {
			if pages, err := strconv.ParseInt(args[1], 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// pressedPercent is the garbage that work with large pieces may leave, in percent
// of what lives. A quarter of Go's usual keeps a process that makes or restores
// a backup of any size below 100 MB, at 1.8 times the processor time
// (82 MB and 4.9 s against 112 MB and 2.6 s for a table of 0.3 GB).
const pressedPercent = 25

// Collector is Go's collector, which the whole process shares: there is one, for all
// sites together, or one site would take for usual what another asked for. Its zero
// value is ready. A nil one leaves the collector alone: that of a program, as of tests,
// in which this one's commands are not all that runs.
type Collector struct {
	Fixed bool // the environment's GOGC says what it does: Adapt changes nothing

	mu    sync.Mutex
	users int
	usual int // GOGC, while users > 0
}

// Limit makes the collector work harder near the limit, so that the
// soft stop above it is rare. The space left is for what Go does not count.
func (s *Collector) Limit(bytes int64) {
	if s != nil && bytes > 0 {
		debug.SetMemoryLimit(bytes * 9 / 10)
	}
}

// smallHeap is up to where what lives is little, and smallPercent the garbage that a
// worker may leave then. With Go's usual 100 the three megabytes of a worker that runs short
// jobs are looked through forty times a second, an eighth of its processor time; 200 costs
// four megabytes more.
const smallHeap, smallPercent, usualPercent = 8 << 20, 200, 100

// Adapt lets the collector of a worker wait for more garbage while little lives. It looks
// at what lives now: call it again and again.
func (s *Collector) Adapt() {
	if s == nil || s.Fixed {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := usualPercent
	if live[0].Value.Uint64() <= smallHeap {
		percent = smallPercent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 {
		s.usual = percent
		return
	}
	debug.SetGCPercent(percent)
}

// Press makes the collector work harder for a while. It begins, and what it returns
// ends, once. The last that ends sets the collector back to what it was.
func (s *Collector) Press() (done func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 {
		s.usual = debug.SetGCPercent(pressedPercent)
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users--; s.users == 0 {
			debug.SetGCPercent(s.usual)
		}
	})
}
