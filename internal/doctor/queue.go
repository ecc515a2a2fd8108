package doctor

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/app/probe"
)

// checkLease: a PHP worker on the same table takes what was reserved longer
// ago than its retry_after.
func checkLease(_ context.Context, r *app.Services) ([]Finding, error) {
	q := r.Config.Queue
	if r.Config.CMS.Dir == "" {
		return []Finding{warn("name the CMS's folder (cms.dir), or check that queue.php_retry_after equals "+
			"DB_QUEUE_RETRY_AFTER", "PHP's retry_after is taken for %s; the CMS's own .env is not known",
			q.PHPRetryAfter)}, nil
	}
	return []Finding{ok("our leases (%s, renewed every %s) are seen by a PHP worker, whose retry_after is %s", q.Lease,
		q.Lease/3, q.PHPRetryAfter)}, nil
}

func checkQueues(ctx context.Context, r *app.Services) ([]Finding, error) {
	stats, err := r.History.Stats(ctx)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, q := range stats.Queues {
		waiting := q.Queued
		switch {
		case q.Paused:
			found = append(found, warn("cmsjobs continue "+q.Queue, "the queue %s is paused; %d {job waits|jobs "+
				"wait} in it", q.Queue, waiting))
		case waiting > 0 && q.Workers == 0:
			found = append(found, warn("", "%d {job waits|jobs wait} in the queue %s for up to %s, and no worker "+
				"listens to it", waiting, q.Queue, display.Span(q.Oldest)).by("start a worker for it: cmsjobs work "+
				"--queue %s", q.Queue))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("%d {job waits|jobs wait}, %d {runs|run}; every queue with jobs has a worker",
			stats.Queued, stats.Processing))
	}
	return found, nil
}

// checkForeign looks at rows that are not ours: PHP's own, and those of types
// that nobody here knows.
func checkForeign(ctx context.Context, r *app.Services) ([]Finding, error) {
	list, err := r.History.Jobs(ctx, jobs.Filter{Statuses: []jobs.Status{jobs.StatusQueued}}, jobs.Page{Limit: 500})
	if err != nil {
		return nil, err
	}
	workers, err := r.History.Workers(ctx)
	if err != nil {
		return nil, err
	}
	foreign := 0
	unknown := map[string]int{}
	for _, j := range list.Items {
		_, known := r.Registry.Lookup(j.Type)
		known = known || slices.ContainsFunc(workers, func(w jobs.WorkerRecord) bool {
			return w.Alive && slices.Contains(w.Types, j.Type)
		})
		switch {
		case j.Foreign && strings.ContainsAny(j.Type, `\@`): // a class of PHP
			foreign++
		case !known:
			unknown[j.Type]++
		}
	}
	var found []Finding
	for kind, n := range unknown {
		found = append(found,
			warn("write the type as \"cmsjobs types\" lists it, or let the program that knows it run",
				"%d waiting jobs have the type %q, which nobody here can run", n, kind))
	}
	if foreign > 0 {
		who := say("they are left to php artisan queue:work")
		if r.Config.PHP.Enabled {
			who = say("those in the queues of php.queues are run here")
		}
		found = append(found, ok("%d of the newest waiting jobs are PHP's own: %s", foreign, who))
	}
	if len(found) == 0 {
		found = append(found, ok("all waiting jobs are ours"))
	}
	return found, nil
}

func checkWorkers(ctx context.Context, r *app.Services) ([]Finding, error) {
	workers, err := r.History.Workers(ctx)
	if err != nil {
		return nil, err
	}
	alive := 0
	var found []Finding
	for _, w := range workers {
		if w.Alive {
			alive++
		}
		ours := slices.ContainsFunc(w.Types, func(name string) bool { _, ours := r.Registry.Lookup(name); return ours })
		if w.Alive && ours && w.Version != r.Version {
			found = append(found, warn("cmsjobs restart", "the worker %s runs version %s, this is %s", w.ID, w.Version,
				r.Version))
		}
	}
	if alive == 0 {
		f := warn("cmsjobs run, best under systemd or supervisor (deploy/)", "no worker runs")
		f.condition = conditions.NoWorker
		return append(found, f), nil
	}
	return append(found, ok("%d workers run", alive)), nil
}

func checkFailed(ctx context.Context, r *app.Services) ([]Finding, error) {
	f := jobs.Filter{Statuses: []jobs.Status{jobs.StatusFailed}}
	total, err := r.History.Count(ctx, f)
	if err != nil {
		return nil, err
	}
	f.Since = r.Now().Add(-24 * time.Hour)
	recent, err := r.History.Count(ctx, f)
	if err != nil {
		return nil, err
	}
	switch {
	case recent > 0:
		return []Finding{
			warn("cmsjobs failed groups shows the causes", "%d {job|jobs} failed within a day (%d in all)", recent,
				total)}, nil
	case total > 10_000:
		return []Finding{warn("cmsjobs failed prune", "failed_jobs has %d rows; nobody prunes it", total)}, nil
	}
	return []Finding{ok("%d failed jobs are kept, none of the last day", total)}, nil
}

// checkFolders tries to write where jobs write.
func checkFolders(_ context.Context, r *app.Services) ([]Finding, error) {
	if r.Site.Root == "" {
		return []Finding{warn("set cms.dir", "the CMS's folder is not known: sitemaps, pictures, caches and logs "+
			"cannot be worked on")}, nil
	}
	var found []Finding
	dirs := []string{r.Site.Public(), r.Site.Storage(), filepath.Join(r.Site.Storage(), "framework", "cache"),
		filepath.Join(r.Site.Storage(), "logs")}
	if !r.Site.Application().Other() {
		dirs = append(dirs, filepath.Join(r.Site.Public(), "storage"))
	}
	for _, dir := range dirs {
		err := tryWriting(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found = append(found, warn("make it, or check cms.dir", "there is no folder %s", dir))
		case err != nil:
			found = append(found, fail("", "%s is not writable: %v", dir, err).by("run the service as the web "+
				"server's user (often www-data), or give it the right to write there (this is user %d)", os.Getuid()))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("public, uploads, caches and logs are writable"))
	}
	return found, nil
}

func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".cmsjobs-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// alsoInCMS are jobs of ours that the real CMS's own scheduler does too.
var alsoInCMS = []string{"sitemap.indexnow", "cache.clearExpired", "logs.cleanup"}

// checkCMSScheduler looks for the heartbeat of the CMS's own scheduler, so that
// nothing is done twice.
func checkCMSScheduler(ctx context.Context, r *app.Services) ([]Finding, error) {
	settings, err := r.Site.Settings(ctx)
	if err != nil {
		return nil, err
	}
	zone, err := r.Site.Zone(ctx)
	if err != nil {
		return nil, err
	}
	text := settings.String("cronjob_last_run_at", "")
	last, err := time.ParseInLocation(time.DateTime, text, zone)
	if text == "" || err != nil || r.Now().Sub(last) > time.Hour {
		return ownScheduler(ctx, r)
	}
	var both []string
	for _, kind := range alsoInCMS {
		if _, known := r.Registry.Lookup(kind); known {
			both = append(both, kind)
		}
	}
	if len(both) == 0 || !r.Config.Schedule.Enabled {
		return []Finding{ok("the CMS's own scheduler runs (last %s ago)", display.Span(r.Now().Sub(last)))}, nil
	}
	return []Finding{warn("switch those entries off here (schedule.entries.NAME.enabled: false) or in the CMS",
		"the CMS's own scheduler runs too (last %s ago): %s may be done twice", display.Span(r.Now().Sub(last)),
		strings.Join(both, ", "))}, nil
}

// checkKinds says what this program can run here.
func checkKinds(_ context.Context, r *app.Services) ([]Finding, error) {
	kinds := slices.DeleteFunc(r.Registry.Types(), func(k string) bool { return k == probe.Kind.Name })
	if len(kinds) == 0 {
		return []Finding{warn("name the CMS's folder: cms.dir", "no type can run here")}, nil
	}
	found := []Finding{ok("can run here: %s", strings.Join(kinds, ", "))}
	for _, kind := range slices.Sorted(maps.Keys(r.Off)) {
		found = append(found, ok("off here: %s: %s", kind, r.Off[kind]))
	}
	return found, nil
}
