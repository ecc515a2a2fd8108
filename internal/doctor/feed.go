package doctor

import (
	"context"
	"errors"
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
	looks := say("new rows are looked for every %s while jobs come, every %s while none do (%.3g statements "+
		"a second, half of it at night)",
		c.Probe, c.ProbeIdle, float64(time.Second)/float64(c.ProbeIdle))
	if c.Probe == 0 {
		looks = say("feed.probe is 0: a row of another program waits up to %s (queue.poll)",
			r.Config.Queue.Poll)
	}
	sources, err := r.ChangeFeeds(ctx)
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return []Finding{ok("%s; %s", looks, edits(r, nil))}, nil
	}
	var broken []Finding
	for _, source := range sources {
		err := feed.Try(ctx, source, feedTime)
		if err == nil {
			return append([]Finding{ok("rows of other programs are noticed within milliseconds by the %s; %s",
				source.Name(), edits(r, source))}, broken...), nil
		}
		broken = append(broken, withoutFeed(source, err, c.Mode, say("%s; %s", looks, edits(r, nil))))
	}
	return broken, nil
}

// withoutFeed says why a feed does not work, and what is done instead.
func withoutFeed(source feed.Source, err error, mode string, instead sentence) Finding {
	var missing *feed.UnavailableError
	if !errors.As(err, &missing) {
		return warn("", "the %s does not work (%v); %s", source.Name(), err, instead)
	}
	if mode != "auto" {
		return warn(missing.Fix, "feed.mode is %s, but %s; %s", mode, missing.What, instead)
	}
	found := ok("%s; within milliseconds by the %s, but %s", instead, source.Name(), missing.What)
	found.Fix = missing.Fix
	return found
}

// edits says how soon an editor's work is noticed; works is the feed that does.
func edits(r *app.Services, works feed.Source) sentence {
	c := r.Config.Publish
	content, ok := works.(feed.ContentSource)
	switch {
	case !c.Watch:
		return say("edits of the CMS's content are not watched (publish.watch)")
	case ok && content.SeesContent():
		return say("so are edits of the CMS's content")
	case c.Probe == 0:
		return say("edits of the CMS's content are looked for every %s", c.Every)
	default:
		return say("edits of the CMS's content are looked for every %s by day", c.Probe)
	}
}
