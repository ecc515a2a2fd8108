package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/handlers/purge"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// sitemapUpdated follows a new sitemap, in the transaction that completes its
// job: the CMS's cached copy goes, caches in front of the site hear of what changed,
// and anyone who subscribed is notified. (The sitemap job itself enqueues
// sitemap.indexnow.)
func (r *Services) sitemapUpdated(ctx context.Context, e sitemap.Event) error {
	jobs.FollowUp(ctx, cache.Clear.New(cache.ClearPayload{Tags: []string{"sitemap"}}))
	next, err := r.purgeChanged(ctx, purge.Payload{Changed: true, URLs: []string{e.URL}})
	if err != nil {
		return err
	}
	jobs.FollowUp(ctx, next...)
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
		f.r.Log.Error("no notification of a failed job was sent; the job is in failed_jobs",
			"event", "job.notify_failed", "uuid", end.Claimed.Job.UUID, "error", err)
	}
}

func (f *failures) tell(ctx context.Context, end jobs.Settlement) error {
	if f.r.Activity != nil {
		f.r.Activity.Failed(ctx, end)
	}
	var next []jobs.Spec
	if n, ok := notify.JobFailed(end.Claimed.Job, end.Error, f.r.jobURL(end.Claimed.Job.UUID)); ok &&
		!f.r.Config.Notify.Silent() {
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
	text := fmt.Sprintf("The tick of %s was missed: nothing ran then, or everything was too busy. See that the "+
		"service is always up.", tick.Format(time.RFC3339))
	if _, err := r.Enqueue(ctx, notify.ScheduleMissed(entry, text, r.pageURL("/admin/schedules"))); err != nil {
		r.Log.Error("no notification of a missed tick was sent", "event", "schedule.notify_failed",
			"entry", entry, "tick", tick, "error", err)
	}
}

// ticked may tell the audit log of a tick that was taken.
func (r *Services) ticked(entry, jobType string) {
	if r.Activity != nil {
		r.Activity.Ticked(entry, jobType)
	}
}

// backupFinished tells the subscribers, and people when a backup
// is bad.
func (r *Services) backupFinished(ctx context.Context, report catalog.Report) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if err := r.tellOfBackup(ctx, report); err != nil {
		r.Log.Error("no notification of the backup's end was sent", "event", "backup.notify_failed",
			"backup", report.ID, "status", report.Status, "error", err)
	}
}

// backupsWatched tells people what a look at the backups showed.
func (r *Services) backupsWatched(ctx context.Context, w health.Watched) {
	text := w.Text()
	if text == "" {
		return
	}
	n := notify.BackupsWatched(text, len(w.Health.Warnings) > 0, w.Digest != nil, r.pageURL("/admin/backups"))
	if _, err := r.Enqueue(ctx, n); err != nil {
		r.Log.Error("no notification of the backups' status was sent", "event", "backup.notify_failed",
			"warnings", len(w.Health.Warnings), "error", err)
	}
}

func (r *Services) tellOfBackup(ctx context.Context, report catalog.Report) error {
	var next []jobs.Spec
	if h := r.Handlers.Webhook; h != nil && report.Status == manifest.Complete {
		deliveries, err := h.Publish(ctx, webhook.BackupCompleted, report)
		if err != nil {
			return err
		}
		next = append(next, deliveries...)
	}
	if text := badBackup(report); text != "" {
		next = append(next, notify.BackupBad(text, r.pageURL("/admin/backups")))
	} else if r.Config.Backup.Notify == "always" {
		next = append(next, notify.BackupMade(goodBackup(report), r.pageURL("/admin/backups")))
	}
	if len(next) == 0 {
		return nil
	}
	_, err := r.Enqueue(ctx, next...)
	return err
}

// goodBackup says what a complete backup holds.
func goodBackup(report catalog.Report) string {
	verification := "It was not read back."
	if report.Verification != nil {
		verification = "Verification: " + VerificationText(*report.Verification) + "."
	}
	return fmt.Sprintf("Backup %s holds %d tables with %d rows and %d files in %s. %s", report.ID, report.Tables,
		report.Rows, report.Files, humanize.IBytes(uint64(report.Size)), verification)
}

// badBackup says what is wrong with a backup, "" when nothing is.
func badBackup(report catalog.Report) string {
	switch {
	case report.Error != "":
		return fmt.Sprintf("Backup %s is %s: %s", report.ID, report.Status, report.Error)
	case report.Status != manifest.Complete:
		return fmt.Sprintf("Backup %s is %s: %s", report.ID, report.Status,
			strings.TrimSpace(report.DatabaseError+" "+report.FilesError))
	case report.Verification != nil && !report.Verification.OK:
		return fmt.Sprintf("Backup %s could not be verified: %s", report.ID, strings.Join(report.Verification.Problems,
			"; "))
	}
	return ""
}
