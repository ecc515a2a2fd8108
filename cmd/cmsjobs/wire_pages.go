package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// webWebhooks shows and changes subscriptions.
type webWebhooks struct{ h *webhook.Handler }

func (w webWebhooks) Webhooks(ctx context.Context) ([]web.Webhook, error) {
	list, err := w.h.Subscriptions(ctx)
	out := make([]web.Webhook, 0, len(list))
	for _, s := range list {
		out = append(out, webhookView(s))
	}
	return out, err
}

func webhookView(s webhook.Subscription) web.Webhook {
	note := s.Name
	if s.Reason != "" {
		note += " (" + s.Reason + ")"
	}
	return web.Webhook{ID: strconv.FormatInt(s.ID, 10), URL: s.URL, Events: s.Events, Enabled: s.State == webhook.Active, Note: note}
}

// number reads the id of a subscription or a delivery.
func number(id string) (int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number of a webhook: %w", id, jobs.ErrNotFound)
	}
	return n, nil
}

func notThere(err error) error {
	if errors.Is(err, webhook.ErrNoSubscription) || errors.Is(err, webhook.ErrNoDelivery) {
		return errors.Join(jobs.ErrNotFound, err)
	}
	return err
}

// SaveWebhook adds one, or switches one on or off. Its address and events stay
// what they are: whoever wants others makes a new one, with a new secret.
func (w webWebhooks) SaveWebhook(ctx context.Context, x web.Webhook) (web.Webhook, error) {
	if x.ID == "" {
		events := x.Events
		if len(events) == 0 {
			events = []string{"*"}
		}
		s, secret, err := w.h.Create(ctx, x.Note, x.URL, events)
		if err != nil {
			return web.Webhook{}, err
		}
		view := webhookView(s)
		view.Secret = secret
		return view, nil
	}
	id, err := number(x.ID)
	if err != nil {
		return web.Webhook{}, err
	}
	was, err := w.subscription(ctx, id)
	if err != nil {
		return web.Webhook{}, err
	}
	if x.URL != "" && x.URL != was.URL || len(x.Events) > 0 && !slices.Equal(x.Events, was.Events) {
		return web.Webhook{}, fmt.Errorf("the address and the events of a webhook cannot be changed; add another one and delete this: %w", jobs.ErrConflict)
	}
	if x.Enabled {
		err = w.h.Enable(ctx, id)
	} else {
		err = w.h.Disable(ctx, id, "switched off by hand")
	}
	if err != nil {
		return web.Webhook{}, notThere(err)
	}
	was, err = w.subscription(ctx, id)
	return webhookView(was), err
}

func (w webWebhooks) subscription(ctx context.Context, id int64) (webhook.Subscription, error) {
	list, err := w.h.Subscriptions(ctx)
	if err != nil {
		return webhook.Subscription{}, err
	}
	at := slices.IndexFunc(list, func(s webhook.Subscription) bool { return s.ID == id })
	if at < 0 {
		return webhook.Subscription{}, notThere(webhook.ErrNoSubscription)
	}
	return list[at], nil
}

func (w webWebhooks) DeleteWebhook(ctx context.Context, id string) error {
	n, err := number(id)
	if err != nil {
		return err
	}
	return notThere(w.h.Remove(ctx, n))
}

// requestShown is how much of a request the list of deliveries shows, in
// characters.
const requestShown = 2000

func (w webWebhooks) Deliveries(ctx context.Context, id string, p jobs.Page) (jobs.List[web.Delivery], error) {
	var n int64
	var err error
	if id != "" {
		if n, err = number(id); err != nil {
			return jobs.List[web.Delivery]{}, err
		}
	}
	list, err := w.h.Deliveries(ctx, n, p)
	out := jobs.List[web.Delivery]{Total: list.Total, Next: list.Next}
	for _, d := range list.Items {
		answer := d.Answer
		if d.Error != "" {
			answer = d.Error
		}
		out.Items = append(out.Items, web.Delivery{ID: strconv.FormatInt(d.ID, 10), Webhook: strconv.FormatInt(d.Subscription, 10), Event: d.Event, At: d.At, Status: d.Status, Answer: answer, Request: short(d.Request, requestShown), Attempt: d.Attempt})
	}
	return out, err
}

func (w webWebhooks) Redeliver(ctx context.Context, delivery string) (jobs.Receipt, error) {
	n, err := number(delivery)
	if err != nil {
		return jobs.Receipt{}, err
	}
	receipt, err := w.h.Redeliver(ctx, n)
	return receipt, notThere(err)
}

// webMedia looks at thumbnails. Looking reads every row and every name, so an
// answer serves for a while.
type webMedia struct {
	r    *rooms
	seen remembered[web.MediaStatus]
}

const examplesShown = 20

func (m *webMedia) MediaStatus(ctx context.Context) (web.MediaStatus, error) {
	return m.seen.ask(m.r.now, func() (web.MediaStatus, error) {
		report, err := m.r.handlers.media.Check(ctx, media.CheckOptions{}, func(int64, int64) {})
		return web.MediaStatus{Pictures: report.Pictures, Missing: int64(len(report.Missing)), Failed: int64(len(report.Lost)),
			Examples: report.Missing[:min(len(report.Missing), examplesShown)]}, err
	})
}

// Regenerate enqueues a job for each picture.
func (m *webMedia) Regenerate(ctx context.Context, onlyMissing bool) (int, error) {
	var f cms.MediaFilter
	n := 0
	for {
		files, err := m.r.site.MediaFiles(ctx, f, 500)
		if err != nil || len(files) == 0 {
			return n, err
		}
		var list []jobs.New
		for _, file := range files {
			f.After = file.ID
			if strings.HasPrefix(file.MIME, "image/") {
				list = append(list, media.ProcessImage.Of(media.ProcessImagePayload{MediaFileID: media.ID(file.ID), FilePath: file.URL, MimeType: file.MIME, Force: !onlyMissing}))
			}
		}
		if len(list) == 0 {
			continue
		}
		if _, err := m.r.Enqueue(ctx, list...); err != nil {
			return n, err
		}
		n += len(list)
	}
}

// webSitemap shows the files of the sitemap, and what IndexNow was told.
type webSitemap struct {
	dir   string
	runs  web.History
	hosts string // whom sitemap.indexnow tells
}

// mapsShown bounds how many files are read for a page.
const mapsShown = 200

// submissionsShown is how many runs of sitemap.indexnow are shown.
const submissionsShown = 30

// submissions are the last runs that told search engines, or tried to.
func (s webSitemap) submissions(ctx context.Context) ([]web.Submission, error) {
	runs, err := s.runs.Runs(ctx, jobs.Filter{Kinds: []string{sitemap.IndexNow.Name}}, jobs.Page{Limit: submissionsShown})
	var list []web.Submission
	for _, r := range runs.Items {
		var did sitemap.Submission
		if len(r.Result) > 0 && json.Unmarshal(r.Result, &did) != nil {
			continue // of another version
		}
		x := web.Submission{At: r.EndedAt, Host: s.hosts, URLs: did.Added + did.Changed + did.Deleted, Note: strings.Join(append(did.Refusals, r.Error), " ")}
		switch {
		case r.Outcome != jobs.Completed.String():
			x.Failed = true
		case did.Calls > 0:
			x.Status = http.StatusOK
		default:
			x.URLs, x.Note = 0, did.Why
		}
		x.Note = strings.TrimSpace(x.Note)
		list = append(list, x)
	}
	return list, err
}

func (s webSitemap) SitemapStatus(ctx context.Context) (web.SitemapStatus, error) {
	var status web.SitemapStatus
	var err error
	if status.Submissions, err = s.submissions(ctx); err != nil {
		return status, err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return status, err
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), "sitemap*.xml")
	if err != nil {
		return status, err
	}
	for _, name := range names[:min(len(names), mapsShown)] {
		file, err := sitemapFile(root, name)
		if err != nil {
			return status, err
		}
		status.Files = append(status.Files, file)
	}
	return status, nil
}

func sitemapFile(root *os.Root, name string) (web.SitemapFile, error) {
	f, err := root.Open(name)
	if err != nil {
		return web.SitemapFile{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return web.SitemapFile{}, err
	}
	// sitemaps.org allows 50 MiB a file.
	text, err := io.ReadAll(io.LimitReader(f, 50<<20))
	return web.SitemapFile{Name: name, URLs: strings.Count(string(text), "<loc>"), Size: info.Size(), Modified: info.ModTime()}, err
}

// remembered is an answer that serves for a while: long enough for many who
// ask at once, short enough that nobody sees old figures after a deed.
type remembered[T any] struct {
	lock sync.Mutex
	at   time.Time
	last T
}

const rememberedFor = 10 * time.Second

func (m *remembered[T]) ask(now func() time.Time, find func() (T, error)) (T, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if !m.at.IsZero() && now().Sub(m.at) < rememberedFor {
		return m.last, nil
	}
	found, err := find()
	if err == nil {
		m.last, m.at = found, now()
	}
	return found, err
}

// webGrowth shows what takes room.
type webGrowth struct {
	r    *rooms
	seen remembered[[]web.Room]
}

func (g *webGrowth) Growth(ctx context.Context) ([]web.Room, error) {
	return g.seen.ask(g.r.now, func() ([]web.Room, error) {
		list, err := g.r.site.TableSizes(ctx)
		if err != nil {
			return nil, err
		}
		var out []web.Room
		for _, t := range list {
			out = append(out, web.Room{Name: t.Name, Part: "table", Bytes: t.Bytes, Rows: t.Rows})
		}
		return append(out, g.folders(ctx)...), nil
	})
}

// SizesSince adds up what was kept of each day.
func (g *webGrowth) SizesSince(ctx context.Context, since time.Time) ([]web.SizeDay, error) {
	list, err := g.r.store.Sizes(ctx, since)
	var days []web.SizeDay
	for _, x := range list {
		if len(days) == 0 || days[len(days)-1].Day != x.Day {
			days = append(days, web.SizeDay{Day: x.Day})
		}
		if day := &days[len(days)-1]; x.Part == "table" {
			day.Tables += x.Bytes
		} else {
			day.Disk += x.Bytes
		}
	}
	return days, err
}

// sizesEvery is how often sizes are measured for the plots of growth.
const sizesEvery = time.Hour

// noteSizes writes today's sizes down, unless somebody did within the hour.
func (r *rooms) noteSizes(ctx context.Context) error {
	age, ever, err := r.store.SizesAge(ctx)
	if err != nil || ever && age < sizesEvery {
		return err
	}
	list, err := (&webGrowth{r: r}).Growth(ctx)
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	for _, x := range list {
		sizes[x.Part] += x.Bytes
	}
	return r.store.KeepSizes(ctx, sizes)
}

func (g *webGrowth) folders(ctx context.Context) []web.Room {
	if g.r.site.Root == "" {
		return nil
	}
	storage := g.r.site.Storage()
	var out []web.Room
	for _, f := range []struct{ part, dir string }{
		{"cache", filepath.Join(storage, "framework", "cache")}, {"cache", filepath.Join(storage, "framework", "views")},
		{"logs", filepath.Join(storage, "logs")}, {"media", g.r.uploads()}, {"backup", filepath.Join(storage, "app", "cmsjobs-backups")},
	} {
		bytes, files, whole := folderSize(ctx, f.dir)
		name := strings.TrimPrefix(strings.TrimPrefix(f.dir, g.r.site.Root), string(filepath.Separator))
		if !whole {
			name += " (at least)"
		}
		out = append(out, web.Room{Name: name, Part: f.part, Bytes: bytes, Rows: files})
	}
	return out
}

// filesCounted bounds the walk through one folder.
const filesCounted = 200_000

// folderSize adds up a folder; whole is false when it was too large for that.
func folderSize(ctx context.Context, dir string) (bytes, files int64, whole bool) {
	whole = true
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil || files >= filesCounted {
			whole = false
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be read is not counted
		}
		if info, err := d.Info(); err == nil {
			bytes, files = bytes+info.Size(), files+1
		}
		return nil
	})
	return bytes, files, whole
}

// hostsOf are the hosts of addresses, for people.
func hostsOf(addresses []string) string {
	var hosts []string
	for _, a := range addresses {
		if u, err := url.Parse(a); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	return strings.Join(hosts, ", ")
}
