package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// sitemapUpdated follows a new sitemap, in the transaction that completes its
// job: the CMS's cached copy goes, and anyone who subscribed is notified. (The sitemap
// job itself enqueues sitemap.indexnow.)
func (r *Services) sitemapUpdated(ctx context.Context, e sitemap.Event) error {
	jobs.FollowUp(ctx, cache.Clear.New(cache.ClearPayload{Tags: []string{"sitemap"}}))
	return r.publish(ctx, "sitemap.updated", e)
}

// publish enqueues the deliveries of an event with the job that caused it.
func (r *Services) publish(ctx context.Context, event string, data any) error {
	deliveries, err := r.deliveries(ctx, event, data)
	jobs.FollowUp(ctx, deliveries...)
	return err
}

// deliveries are the jobs that tell subscribers of an event.
func (r *Services) deliveries(ctx context.Context, event string, data any) ([]jobs.Spec, error) {
	if r.Handlers.Webhook == nil {
		return nil, nil
	}
	return r.Handlers.Webhook.Publish(ctx, event, data)
}

// failures tells people about jobs that failed for good. The worker only drops
// them in: telling must not slow it down.
type failures struct {
	r          *Services
	list       chan jobs.Settlement
	last, done chan struct{}
}

// telling makes a worker with o tell people; finish returns when the last
// failure was reported.
func (r *Services) telling(ctx context.Context, o WorkerOptions) (_ WorkerOptions, finish func()) {
	f := &failures{r, make(chan jobs.Settlement, 1000), make(chan struct{}), make(chan struct{})}
	go f.run(context.WithoutCancel(ctx))
	also := o.Ended
	o.Ended = func(end jobs.Settlement) {
		if also != nil {
			also(end)
		}
		f.ended(end)
	}
	return o, func() { close(f.last); <-f.done }
}

// ended takes a run; all but failed jobs are none of its business. In a storm
// of failures some are not distinguished: messages are grouped by the hour anyway,
// and failed_jobs has them all.
func (f *failures) ended(end jobs.Settlement) {
	if end.Outcome != jobs.Failed {
		return
	}
	select {
	case f.list <- end:
	default:
	}
}

// run tells until the worker has ended, and then what is left for 10 seconds.
func (f *failures) run(ctx context.Context) {
	defer close(f.done)
	for {
		select {
		case end := <-f.list:
			f.try(ctx, end)
			continue
		case <-f.last:
		}
		break
	}
	ctx, cancel := context.WithTimeout(ctx, tellingTime)
	defer cancel()
	for len(f.list) > 0 {
		f.try(ctx, <-f.list)
	}
}

// tellingTime is how long one failure may take to be reported.
const tellingTime = 10 * time.Second

func (f *failures) try(ctx context.Context, end jobs.Settlement) {
	ctx, cancel := context.WithTimeout(ctx, tellingTime)
	defer cancel()
	if err := f.tell(ctx, end); err != nil {
		f.r.Log.Error("no notification of a failed job was sent; the job is in failed_jobs", "event", "job.notify_failed",
			"uuid", end.Claimed.Job.UUID, "error", err)
	}
}

func (f *failures) tell(ctx context.Context, end jobs.Settlement) error {
	if f.r.Activity != nil {
		f.r.Activity.failed(ctx, end)
	}
	var next []jobs.Spec
	if n, ok := notify.JobFailed(end.Claimed.Job, end.Error, f.r.jobURL(end.Claimed.Job.UUID)); ok && !f.r.Config.Notify.Silent() {
		next = append(next, n)
	}
	if h := f.r.Handlers.Webhook; h != nil {
		deliveries, err := h.PublishFailure(ctx, end.Claimed.Job, end.Error)
		if err != nil {
			return err
		}
		next = append(next, deliveries...)
	}
	if len(next) == 0 {
		return nil
	}
	_, err := f.r.Enqueue(ctx, next...)
	return err
}

// jobURL is a job's page, "" where the address of the pages is not known.
func (r *Services) jobURL(uuid string) string { return r.pageURL("/admin/jobs/" + uuid) }

// pageURL is the address of one of our pages, "" where theirs is not known.
func (r *Services) pageURL(path string) string {
	if r.Config.HTTP.URL == "" {
		return ""
	}
	return strings.TrimSuffix(r.Config.HTTP.URL, "/") + path
}

// tickMissed tells people of a tick that nobody took.
func (r *Services) tickMissed(ctx context.Context, entry string, tick time.Time) {
	if r.Metrics != nil {
		r.Metrics.Missed(entry)
	}
	text := fmt.Sprintf("The tick of %s was missed: nothing ran then, or everything was too busy. See that the service is always up.", tick.Format(time.RFC3339))
	if _, err := r.Enqueue(ctx, notify.ScheduleMissed(entry, text, r.pageURL("/admin/schedules"))); err != nil {
		r.Log.Error("no notification of a missed tick was sent", "event", "schedule.notify_failed",
			"entry", entry, "tick", tick, "error", err)
	}
}

// ticked may tell the audit log of a tick that was taken.
func (r *Services) ticked(entry, jobType string) {
	if r.Activity != nil {
		r.Activity.ticked(entry, jobType)
	}
}
