package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/feed"
)

// feedTime is how long a change feed may take to say that it works.
const feedTime = 15 * time.Second

// checkFeed says how soon a row is noticed that another program inserts, what that
// costs, and what a faster way needs.
func checkFeed(ctx context.Context, r *app.Services) ([]Finding, error) {
	c := r.Config.Feed
	looks := fmt.Sprintf("new rows are looked for every %s while jobs come, every %s while none do (%.3g statements "+
		"a second, half of it at night)",
		c.Probe, c.ProbeIdle, float64(time.Second)/float64(c.ProbeIdle))
	if c.Probe == 0 {
		looks = fmt.Sprintf("feed.probe is 0: a row of another program waits up to %s (queue.poll)",
			r.Config.Queue.Poll)
	}
	source, err := r.ChangeFeed(ctx)
	if err != nil {
		return nil, err
	}
	if source == nil {
		return []Finding{ok("%s", looks)}, nil
	}
	err = feed.Try(ctx, source, feedTime)
	if err == nil {
		return []Finding{ok("rows of other programs are noticed within milliseconds by the %s", source.Name())}, nil
	}
	var missing *feed.UnavailableError
	if !errors.As(err, &missing) {
		return []Finding{warn("", "the %s does not work (%v); %s", source.Name(), err, looks)}, nil
	}
	if c.Mode != "auto" {
		return []Finding{warn(missing.Fix, "feed.mode is %s, but %s; %s", c.Mode, missing.What, looks)}, nil
	}
	found := ok("%s; within milliseconds by the %s, but %s", looks, source.Name(), missing.What)
	found.Fix = missing.Fix
	return []Finding{found}, nil
}
