package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Model is content that can be published.
type Model struct {
	cms.Model
	// DateColumn holds the publication date of drafts, "" when there is none.
	// (Of a Scheduled model, the date of what is published is created_at.)
	DateColumn string
}

// Models are what is published where nothing else is configured.
func Models() []Model {
	var list []Model
	for _, m := range cms.Models() {
		list = append(list, Model{Model: m})
	}
	return append(list, Model{Model: cms.Model{Name: "ads", Class: `Botble\Ads\Models\Ads`}})
}

// Publication is content whose moment has come.
type Publication struct {
	Model, Class, ID, Title string
	// URL is "" where it has none.
	URL string
	At  time.Time
}

// Queue is where pending publications wait.
type Queue interface {
	jobs.Enqueuer
	// CancelJob ends a waiting job by its UUID; one that is gone is no error.
	CancelJob(ctx context.Context, uuid string) error
}

// Config is what publishing needs. Site, DB, Queue and Now are required.
type Config struct {
	Site *cms.Site
	// DB holds our own tables.
	DB    *sqlx.DB
	Queue Queue
	// Models are Models() when empty.
	Models []Model
	// Effects says which jobs a publication causes; nil causes none.
	Effects func(context.Context, Publication) ([]jobs.Spec, error)
	// Outdated names the jobs that renew what shows the content to readers (the
	// sitemap, caches) where it is older than the content, and what stands for the
	// content as it is; nil: nothing shows it.
	Outdated func(context.Context) (content string, renew []jobs.Spec, err error)
	// Edited names the jobs that renew the pages of rows that the feed named, each
	// TABLE:ID, where readers see a change; nil: Outdated is enough.
	Edited func(ctx context.Context, rows []string) ([]jobs.Spec, error)
	Now    func() time.Time
	Logger *slog.Logger
	// Every is how often the watcher looks in any case: a minute. Probe is how often
	// it does where no feed tells of changes, by day; 0: not oftener.
	Every, Probe time.Duration
	Night        func(time.Time) bool // nil: it is always day
	// Name tells watchers apart (host and process).
	Name string
}

// Handler runs content.publish and plans it.
type Handler struct{ c Config }

// New returns the handler.
func New(c Config) (*Handler, error) {
	if c.Site == nil || c.DB == nil || c.Queue == nil || c.Now == nil {
		return nil, errors.New("publishing needs a site, a database, a queue and a clock")
	}
	if len(c.Models) == 0 {
		c.Models = Models()
	}
	for i := range c.Models {
		c.Models[i].Model = c.Models[i].WithDefaults()
	}
	if c.Effects == nil {
		c.Effects = func(context.Context, Publication) ([]jobs.Spec, error) { return nil, nil }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Every <= 0 {
		c.Every = time.Minute
	}
	return &Handler{c}, nil
}

// Register makes the type known, with the names that other specifications have
// for it.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Publish, h.publish)
	jobs.Results[Result](r, Publish)
	r.Alias("publish_post", Publish.Name)
	r.Alias("publish_adv", Publish.Name)
}

// Result is what became of a publication.
type Result struct {
	// Outcome is published, refreshed, moved, gone, withdrawn, or with a dry-run
	// what it would be.
	Outcome string     `json:"outcome"`
	Model   string     `json:"model"`
	ID      string     `json:"id"`
	URL     string     `json:"url,omitempty"`
	Due     *time.Time `json:"due,omitempty"` // where it was moved to
	DryRun  bool       `json:"dryRun,omitempty"`
}

func (h *Handler) model(name, alias string) (Model, error) {
	if name == "" {
		if name = "posts"; alias == "publish_adv" {
			name = "ads"
		}
	}
	i := slices.IndexFunc(h.c.Models, func(m Model) bool {
		return m.Name == name || m.Name == name+"s" ||
			m.Class == name
	})
	if i < 0 {
		var known []string
		for _, m := range h.c.Models {
			known = append(known, m.Name)
		}
		return Model{}, jobs.Permanent(fmt.Errorf("no model %q is configured for publishing; known are %v", name,
			known))
	}
	return h.c.Models[i], nil
}

func (h *Handler) publish(ctx context.Context, j jobs.Job, p Payload) error {
	m, err := h.model(p.Model, j.Type)
	if err != nil {
		return err
	}
	// The job fell due by the database's clock; ours may be behind it.
	now := h.c.Now()
	if j.RunAt.After(now) {
		now = j.RunAt
	}
	entry, found, err := h.c.Site.Entry(ctx, m.Model, m.DateColumn, string(p.ID))
	if err != nil {
		return err
	}
	r := Result{Model: m.Name, ID: string(p.ID), DryRun: p.DryRun}
	var due time.Time
	r.Outcome, due = decide(m, entry, found, p, now)
	if r.Outcome == moved {
		r.Due = &due
	}
	if !p.DryRun {
		if err := h.carryOut(ctx, m, entry, &r, now); err != nil {
			return err
		}
	}
	return jobs.SetResult(ctx, r)
}

// The outcomes of a publication.
const (
	published = "published" // a draft became public
	refreshed = "refreshed" // what was public by its status is now shown
	moved     = "moved"     // its date lies ahead (again): a later job does it
	gone      = "gone"      // deleted
	withdrawn = "withdrawn" // a draft that nobody wants published any more
)

// decide says what a job does with a row as it stands. It is pure.
func decide(m Model, e cms.Entry, found bool, p Payload, now time.Time) (outcome string, due time.Time) {
	if !found {
		return gone, due
	}
	draft := e.Status == "draft" || e.Status == "pending"
	if draft {
		var wanted bool
		if due, wanted = draftDue(m, e, p); !wanted {
			return withdrawn, due
		}
	} else if e.Status == m.Published && m.Scheduled {
		due = e.Created
	}
	switch {
	case due.After(now):
		return moved, due
	case draft:
		return published, due
	case e.Status != "" && e.Status != m.Published:
		return withdrawn, due
	}
	return refreshed, due
}

// draftDue says when a draft is to be published: at once if due is zero. Wanted is
// false where its date was taken away, and where a job only refreshes.
func draftDue(m Model, e cms.Entry, p Payload) (due time.Time, wanted bool) {
	switch {
	case m.DateColumn != "":
		return e.Date, !p.Refresh && (p.At == nil || !e.Date.IsZero())
	case p.Refresh:
		return due, false
	case p.At != nil:
		return *p.At, true
	}
	return due, true
}

func (h *Handler) carryOut(ctx context.Context, m Model, e cms.Entry, r *Result, now time.Time) (err error) {
	switch r.Outcome {
	case moved:
		_, err := h.schedule(ctx, m, r.ID, *r.Due, e.Status == m.Published)
		return err
	case gone, withdrawn:
		return h.forget(ctx, m, r.ID)
	case published:
		done, err := h.c.Site.MakePublic(ctx, m.Model, r.ID, now)
		if err != nil {
			return err
		}
		if !done { // an editor was faster
			r.Outcome = refreshed
		}
	}
	c := Publication{Model: m.Name, Class: m.Class, ID: e.ID, Title: e.Title, At: now}
	if c.URL, err = h.c.Site.Address(ctx, m.Model, r.ID, now); err != nil { // no reason not to publish
		h.c.Logger.WarnContext(ctx, "address of published content unknown", "event", "publish.address_unknown",
			"model", m.Name, "id", r.ID, "error", err)
	}
	r.URL = c.URL
	next, err := h.c.Effects(ctx, c)
	if err != nil {
		return fmt.Errorf("naming what follows the publication of %s %s: %w", m.Name, r.ID, err)
	}
	jobs.FollowUp(ctx, next...)
	return h.done(ctx, m, r.ID)
}

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	if r.DryRun {
		s.Say("A dry run: nothing was changed.")
	}
	what := r.Model + " " + r.ID
	switch r.Outcome {
	case published:
		s.Say("%s became public.", what)
	case refreshed:
		s.Say("%s was public already; what shows it was refreshed.", what)
	case moved:
		s.Say("%s has a later date; another job publishes it.", what)
	case gone:
		s.Say("%s is deleted: nothing was published.", what)
	default:
		s.Say("%s is no longer to be published.", what)
	}
	if r.Due != nil {
		s.Say("It is due at %s.", *r.Due)
	}
	if r.URL != "" {
		s.Say("Its address is %s", r.URL)
	}
	return s
}
