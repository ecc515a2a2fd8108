package publish

import (
	"testing"
	"time"
)

// A thousand edits in a row make few sitemaps, and those of a person are shown soon.
func TestBurstsMakeFewSitemaps(t *testing.T) {
	var p pace
	var free time.Time
	sitemaps := 0
	now := noon
	for range 1000 {
		if !now.Before(free) {
			free = p.renewed(now)
			sitemaps++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if sitemaps < 5 || sitemaps > 10 {
		t.Errorf("%d sitemaps of 1,000 edits in 100 s", sitemaps)
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if i == 0 {
			now = now.Add(time.Minute)
		} else {
			now = now.Add(10 * time.Second)
		}
		if got := p.renewed(now).Sub(now); got != want {
			t.Errorf("after edit %d of a person the next sitemap is %v away, want %v", i, got, want)
		}
	}
}
