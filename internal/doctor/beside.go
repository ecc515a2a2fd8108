package doctor

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// looked is how many rows of a kind doctor looks at.
const looked = 500

// checkStalled looks for jobs whose worker is gone: they run again when another
// worker takes them.
func checkStalled(ctx context.Context, r *app.Services) ([]Finding, error) {
	list, err := r.History.Jobs(ctx, jobs.Filter{Statuses: []jobs.Status{jobs.StatusProcessing}}, jobs.Page{
		Limit: looked})
	if err != nil {
		return nil, err
	}
	n := 0
	var oldest time.Time
	for _, j := range list.Items {
		if j.Detail == "stalled" && !j.Foreign {
			if n++; n == 1 || j.StartedAt.Before(oldest) {
				oldest = j.StartedAt
			}
		}
	}
	if n == 0 {
		return []Finding{ok("no job has lost its worker")}, nil
	}
	since := say("")
	if !oldest.IsZero() {
		since = say("; the oldest started %s", display.Ago(oldest, r.Now()))
	}
	return []Finding{warn("start a worker: cmsjobs run; or cmsjobs work --stop-when-empty, which takes them over",
		"%d {job has|jobs have} lost {its|their} worker and {waits|wait} for another%s", n, since)}, nil
}

// useOwnQueue is what to do where PHP's workers read our rows.
const useOwnQueue = "enqueue into the queue " + ownQueue + ", which no PHP worker reads, and write \"job\", " +
	"\"displayName\" and \"uuid\" into the payload (docs/enqueue.md)"

// checkShared says what becomes of our rows in a queue that PHP's worker reads, too:
// it fails rows that it does not know, and deletes those without "job".
func checkShared(ctx context.Context, r *app.Services) ([]Finding, error) {
	waiting := jobs.Filter{Statuses: []jobs.Status{jobs.StatusQueued, jobs.StatusProcessing}}
	list, err := r.History.Jobs(ctx, waiting, jobs.Page{Limit: looked})
	if err != nil {
		return nil, err
	}
	ours, bare, php := map[string]int{}, map[string]int{}, map[string]int{}
	for _, j := range list.Items {
		_, known := r.Registry.Lookup(j.Type)
		switch {
		case j.Foreign:
			php[j.Queue]++
		case known:
			ours[j.Queue]++
			if j.Queue != ownQueue && !namesJob(j.Payload) {
				bare[j.Queue]++
			}
		}
	}
	var found []Finding
	for _, queue := range slices.Sorted(maps.Keys(ours)) {
		if n := bare[queue]; n > 0 {
			found = append(found, warn(useOwnQueue, "%d of our {row|rows} in the queue %s {has|have} no \"job\": a "+
				"PHP worker that reads it deletes such a row without a trace", n, queue))
		}
		if n := php[queue]; n > 0 {
			found = append(found, warn(useOwnQueue, "the queue %s has %d of our jobs and %d of PHP's: a PHP worker "+
				"that reads it takes ours, too, and fails them", queue, ours[queue], n))
		}
	}
	taken, err := takenByPHP(ctx, r)
	if err == nil && len(found)+len(taken) == 0 {
		found = append(found, ok("no PHP worker takes our jobs"))
	}
	return append(found, taken...), err
}

// ownQueue is the queue that belongs to this service.
const ownQueue = "cmsjobs"

// namesJob says whether a payload has what PHP's worker looks for.
func namesJob(payload []byte) bool {
	var p struct {
		Job string `json:"job"`
	}
	return json.Unmarshal(payload, &p) == nil && p.Job != ""
}

// phpFailures are how Laravel's worker ends when it meets a job of ours.
var phpFailures = []string{"Target class [", "BindingResolutionException", "ReflectionException",
	"Undefined array key \"job\"", "Undefined index: job"}

// takenByPHP looks for jobs of ours that a PHP worker took from their queue lately.
func takenByPHP(ctx context.Context, r *app.Services) ([]Finding, error) {
	failed := jobs.Filter{Statuses: []jobs.Status{jobs.StatusFailed}, Since: r.Now().Add(-week)}
	list, err := r.History.Jobs(ctx, failed, jobs.Page{Limit: looked})
	if err != nil {
		return nil, err
	}
	queues := map[string]int{}
	for _, j := range list.Items {
		if _, known := r.Registry.Lookup(j.Type); known && slices.ContainsFunc(phpFailures, func(text string) bool {
			return strings.Contains(j.Error, text)
		}) {
			queues[j.Queue]++
		}
	}
	var found []Finding
	for _, queue := range slices.Sorted(maps.Keys(queues)) {
		found = append(found, warn("", "a PHP worker reads the queue %s: within a week it failed %d of our jobs", queue,
			queues[queue]).by("take the queue %s from it (php artisan queue:work --queue=default), then "+
			"cmsjobs failed retry", queue))
	}
	return found, nil
}

const week = 7 * 24 * time.Hour

// checkQueueTable compares the table that we use with that of PHP's connection.
func checkQueueTable(_ context.Context, r *app.Services) ([]Finding, error) {
	used := r.Config.Database.JobsTable
	if r.Site.Root == "" {
		return []Finding{ok("the jobs table is %s", used)}, nil
	}
	if theirs := r.Site.QueueTable(); theirs != used {
		return []Finding{fail("", "PHP's jobs are in the table %s (config/queue.php, DB_QUEUE_TABLE), and this "+
			"service works on %s", theirs, used).by("set database.jobs_table: %s, or leave it out", theirs)}, nil
	}
	connection := r.Site.Env.String("QUEUE_CONNECTION", "")
	if connection != "" && connection != "database" {
		return []Finding{ok("the jobs table is %s; PHP's own jobs go elsewhere (QUEUE_CONNECTION=%s)", used,
			connection)}, nil
	}
	return []Finding{ok("the jobs table is %s, as PHP has it", used)}, nil
}

// checkForeignSitemap looks for another program's sitemap.xml in the place of ours.
func checkForeignSitemap(ctx context.Context, r *app.Services) ([]Finding, error) {
	if r.Handlers.Sitemap == nil {
		return nil, nil
	}
	err := r.Handlers.Sitemap.Foreign(ctx)
	if errors.Is(err, sitemap.ErrForeign) {
		return []Finding{warn("move it away, or give the maps another folder (sitemap.dir), or turn the entry off",
			"%v", err)}, nil
	}
	return nil, err
}

// checkPictures looks for rows whose picture cannot be read from here.
func checkPictures(ctx context.Context, r *app.Services) ([]Finding, error) {
	if r.Handlers.Media == nil {
		return nil, nil
	}
	settings, err := r.Site.Settings(ctx)
	if err != nil {
		return nil, err
	}
	place, err := r.Site.MediaPlace(settings)
	if err != nil || place.Folder == "" {
		return nil, err // a bucket is not asked for each picture
	}
	rows, err := r.Site.MediaFiles(ctx, cms.MediaFilter{}, looked)
	if err != nil {
		return nil, err
	}
	pictures, bad := 0, []string{}
	for _, row := range rows {
		if !strings.HasPrefix(row.MIME, "image/") || row.Private {
			continue
		}
		if pictures++; !readable(place, row.URL) {
			bad = append(bad, row.URL)
		}
	}
	if len(bad) == 0 {
		return []Finding{ok("the originals of the first %d {picture|pictures} can be read", pictures)}, nil
	}
	return []Finding{warn("cmsjobs media check lists them; restore them from a backup, or give this account the right "+
		"to read them", "%d of the first %d {picture|pictures} cannot be read, for example %s", len(bad), pictures,
		strings.Join(bad[:min(len(bad), 3)], ", "))}, nil
}

func readable(place cms.MediaPlace, url string) bool {
	names, err := place.Names(url)
	if err != nil {
		return errors.Is(err, cms.ErrElsewhere)
	}
	for _, name := range names {
		f, err := os.Open(filepath.Join(place.Folder, filepath.FromSlash(name.File)))
		if err == nil {
			_ = f.Close() // it was only opened for reading
			return true
		}
	}
	return false
}

// checkWebServer says whether the web server, which may run as another account, can
// read what is written here.
func checkWebServer(_ context.Context, r *app.Services) ([]Finding, error) {
	if r.Site.Root == "" {
		return nil, nil
	}
	var found []Finding
	public := r.Site.Public()
	for dir := public; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return found, nil // checkFolders says so
		}
		if info.Mode().Perm()&0o001 == 0 {
			found = append(found, warn("", "%s lets no other account in (%s): a web server of another account cannot "+
				"read sitemaps and pictures", dir, info.Mode().Perm()).by(
				"chmod o+x %s, or put the web server into the folder's group", dir))
		}
		if dir == filepath.Dir(dir) || dir == filepath.Clean(r.Site.Root) {
			break
		}
	}
	for _, name := range []string{"sitemap.xml", "robots.txt"} {
		info, err := os.Stat(filepath.Join(public, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().Perm()&0o004 == 0 {
			found = append(found, warn("chmod o+r "+filepath.Join(public, name),
				"%s is readable by its group only (%s)",
				name, info.Mode().Perm()))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("other accounts can read what is published in %s", public))
	}
	return found, nil
}

// checkUmask says what other accounts may do with the files that are written in
// the site's folders.
func checkUmask(_ context.Context, r *app.Services) ([]Finding, error) {
	if r.Site.Root == "" {
		return nil, nil
	}
	probe := filepath.Join(r.Site.Storage(), ".cmsjobs-doctor-"+rand.Text())
	if err := os.WriteFile(probe, nil, 0o666); err != nil {
		return nil, nil //nolint:nilerr // checkFolders says so
	}
	info, err := os.Stat(probe)
	if err := errors.Join(err, os.Remove(probe)); err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o040 == 0 && os.PathSeparator == '/' {
		return []Finding{warn("start the service with the umask 0027 or 0022 (systemd: UMask=0027)",
			"new files get %s: "+
				"PHP under another account of the same group cannot read them", mode)}, nil
	}
	return []Finding{ok("new files get %s", info.Mode().Perm())}, nil
}
