package app

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/feed"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
)

// nightEnds is the hour, of the CMS's clock, at which the night ends that began
// at 00:00.
const nightEnds = 6

// watchFeed notices new rows and wakes the workers of this host, until ctx ends or
// stop is called.
func (r *Services) watchFeed(ctx context.Context) (stop func()) {
	c := r.Config.Feed
	if c.Probe == 0 {
		return func() {}
	}
	watcher := feed.New(feed.Options{
		Rows: r.Store, Wake: func(queue string) { wake.Call(r.WakeDir, wake.Jobs, queue) }, Dir: r.WakeDir,
		Busy: c.Probe, Idle: c.ProbeIdle, Logger: r.Log, Now: r.Now,
		Night: func(now time.Time) bool { return now.In(r.Store.Options.Zone).Hour() < nightEnds },
	})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watcher.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}
