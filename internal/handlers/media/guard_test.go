package media

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// peakOf watches the heap while do runs.
func peakOf(do func()) uint64 {
	runtime.GC()
	var peak atomic.Uint64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		var m runtime.MemStats
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapAlloc))
			}
		}
	})
	do()
	close(stop)
	watch.Wait()
	return peak.Load()
}

// However many pictures come at once, memory stays that of the two that are
// decoded, and a waiting job ends when its context does. CMSJOBS_SOAK=1 runs a
// thousand. (With the guard taken out the peak of 40 is 6 times as high.)
func TestMemoryStaysFlatHoweverManyPicturesCome(t *testing.T) {
	n := 40
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		n = 1000
	}
	s := newSite(t, jobstest.SQLite, Options{AtOnce: 2})
	data := jpegOf(t, 2400, 1800)
	for id := range n {
		s.upload(id+1, fmt.Sprintf("%d.jpg", id+1), "image/jpeg", data)
	}
	all := func(from, to int) func() {
		return func() {
			var group sync.WaitGroup
			for id := from; id <= to; id++ {
				group.Go(func() {
					payload, _ := json.Marshal(map[string]int{"mediaFileId": id})
					if out, err := s.run(string(payload), 1); err != nil || out.Made != 3 {
						t.Errorf("%d: %+v, %v", id, out, err)
					}
				})
			}
			group.Wait()
		}
	}
	few, many := peakOf(all(1, 2)), peakOf(all(3, n))
	if t.Logf("peak of 2: %d MiB, of %d: %d MiB", few>>20, n-2, many>>20); many > 3*few+16<<20 {
		t.Errorf("%d at once took %d MiB, two took %d", n-2, many>>20, few>>20)
	}
}

func TestAWaitingPictureGivesUpWithItsContext(t *testing.T) {
	g := newGuard(1, 100)
	release, err := g.place(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.DeadlineExceeded)
	if _, err := g.place(ctx); err != context.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	release()
	free, err := g.take(t.Context(), 1000) // more than there is: it takes all
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.take(ctx, 1); err != context.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	free()
}

func TestCostGrowsWithWhatIsDecoded(t *testing.T) {
	h := picture.Header{Format: picture.JPEG, StoredWidth: 4000, StoredHeight: 3000, Frames: 1, Streamed: true}
	streamed := cost(h, 4<<20)
	h.Streamed = false
	if whole := cost(h, 4<<20); streamed >= whole || streamed > 80<<20 {
		t.Errorf("streamed %d, whole %d", streamed, whole)
	}
}
