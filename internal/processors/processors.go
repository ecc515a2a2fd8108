package processors

import (
	"runtime"
	"sync"
)

// Share is what of the processors the whole process uses: there is one. Its zero value
// is ready, and uses all. A nil one changes nothing: that of a program, as of tests, in
// which the worker is not all that runs.
type Share struct {
	Fixed bool // the environment's GOMAXPROCS says how many: nothing changes it

	mu   sync.Mutex
	few  int // while nothing takes long; 0 is all
	long int // how many take long
}

// Few has the process use n processors as long as nothing takes long. Short jobs pass from
// goroutine to goroutine. With a processor too many each pass wakes a thread that finds
// nothing to do: a third of the processor time of a worker with one slot, and more where many
// workers share a machine.
func (s *Share) Few(n int) {
	if s == nil || s.Fixed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.few = n; s.long == 0 {
		s.use(n)
	}
}

// Long lets the process use all processors until done is called, once.
func (s *Share) Long() (done func()) {
	if s == nil || s.Fixed {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.long++; s.long == 1 && s.few > 0 {
		runtime.SetDefaultGOMAXPROCS()
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.long--; s.long == 0 && s.few > 0 {
			s.use(s.few)
		}
	})
}

// use sets n, but no more than the process would have by itself. That follows the limits
// of its control group.
func (s *Share) use(n int) {
	runtime.SetDefaultGOMAXPROCS()
	if n < runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(n)
	}
}
