package jobstest

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"
)

// ResidentGrowth runs do and returns by how many bytes the resident memory of
// this process grew at most meanwhile, without what the race detector adds. It skips the test where the system does
// not tell.
func ResidentGrowth(t testing.TB, do func()) int64 {
	t.Helper()
	debug.FreeOSMemory()
	before := resident(t)
	most, stop, stopped := before, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, resident(t))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	do()
	close(stop)
	<-stopped
	return (most - before) / raceFactor
}

func resident(t testing.TB) int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("this system does not tell the resident memory: ", err)
	}
	fields := bytes.Fields(raw)
	if len(fields) < 2 {
		t.Errorf("/proc/self/statm is %q", raw)
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		t.Error(err)
	}
	return pages * int64(os.Getpagesize())
}
