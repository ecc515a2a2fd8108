package web

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// --- Cache, logs and other things that take room ---

type growthSheet struct {
	Configured bool
	Rooms      []Room
	Total      int64
	Top        int64
	started
}

func (s *Server) growthPage(c echo.Context) error {
	v := growthSheet{Configured: s.cfg.Growth != nil, Top: 1}
	var live string
	v.started, live = s.offer(c, "cache.clear", "cache.clearExpired", "logs.cleanup", "queue.clean", "maintenance.cleanup")
	ready := true
	if v.Configured {
		var rooms []Room
		var err error
		rooms, ready, err = s.sizesKept(c.Request().Context())
		if err != nil {
			return fmt.Errorf("measuring sizes: %w", err)
		}
		rooms = slices.Clone(rooms)
		slices.SortStableFunc(rooms, func(a, b Room) int {
			return cmp.Or(strings.Compare(a.Part, b.Part), cmp.Compare(b.Bytes, a.Bytes))
		})
		v.Rooms = rooms
		for _, r := range rooms {
			v.Total, v.Top = v.Total+r.Bytes, max(v.Top, r.Bytes)
		}
	}
	return s.showSoon(c, "growth", "growth.title", live, ready, v)
}

// --- Settings ---

// settings are the configuration's values, secrets masked whatever came.
func (s *Server) settings() []Setting {
	if s.cfg.Settings == nil {
		return nil
	}
	return each(s.cfg.Settings(), func(x Setting) Setting {
		if (x.Secret || secretKey.MatchString(x.Name)) && x.Value != "" {
			x.Secret, x.Value = true, masked
		}
		return x
	})
}

type settingsSheet struct {
	Configured bool
	Settings   []Setting
	Changed    bool // only those that are not defaults
}

func (s *Server) settingsPage(c echo.Context) error {
	v := settingsSheet{Configured: s.cfg.Settings != nil, Settings: s.settings(), Changed: c.QueryParam("changed") != ""}
	if v.Changed {
		v.Settings = slices.DeleteFunc(v.Settings, func(x Setting) bool { return x.Origin == "default" || x.Origin == "" })
	}
	return s.show(c, "settings", "settings.title", v)
}

// --- Audit ---

type auditSheet struct {
	Actor, Action, Target, Since string
	Deeds                        []Deed
	Actions                      []string
	Next                         string
	Cursor                       bool
	Problem                      string
}

func (s *Server) auditPage(c echo.Context) error {
	q := c.QueryParams()
	v := auditSheet{Actor: clip(q.Get("actor"), 191), Action: clip(q.Get("action"), 191), Target: clip(q.Get("target"), 191), Since: q.Get("since"), Actions: actions(), Cursor: q.Get("cursor") != ""}
	since, err := moment(v.Since, "since", s.cfg.Now())
	if err != nil {
		v.Problem, since = problemOf(err).in(language(c)), time.Time{}
	}
	f := access.DeedFilter{Actor: v.Actor, Action: v.Action, Target: v.Target, Since: since}
	list, err := s.cfg.Gate.Store.Deeds(c.Request().Context(), f, jobs.Page{Limit: pageRows, Cursor: clip(q.Get("cursor"), 40)})
	if err != nil {
		return err
	}
	v.Deeds = list.Items
	v.Next = nextPage("/admin/audit", url.Values{"actor": {v.Actor}, "action": {v.Action}, "target": {v.Target}, "since": {v.Since}}, list.Next)
	return s.show(c, "audit", "audit.title", v)
}

// actions are the names that the trail knows.
func actions() []string {
	seen := map[string]bool{"backups.download": true, "failed.export": true, "job_enqueued": true, "job_failed": true}
	for _, r := range routes() {
		if r.changes() {
			seen[r.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// --- Webhooks ---

type webhooksSheet struct {
	Configured bool
	Hooks      []hookRow
	Secret     string // of the one that was just made, shown once
	Problem    string
	URL, Note  string
	Events     string
	started
}

type hookRow struct {
	Webhook
	Deliveries []Delivery
}

const hookDeliveries = 10

func (s *Server) webhooksSheet(c echo.Context) (webhooksSheet, string, error) {
	v := webhooksSheet{Configured: s.cfg.Webhooks != nil}
	var live string
	v.started, live = s.offer(c, "webhook.deliver")
	if !v.Configured {
		return v, live, nil
	}
	ctx := c.Request().Context()
	list, err := s.cfg.Webhooks.Webhooks(ctx)
	if err != nil {
		return v, live, fmt.Errorf("listing webhooks: %w", err)
	}
	for _, w := range list {
		w.Secret = ""
		deliveries, err := s.cfg.Webhooks.Deliveries(ctx, w.ID, jobs.Page{Limit: hookDeliveries})
		if err != nil {
			return v, live, fmt.Errorf("listing deliveries: %w", err)
		}
		v.Hooks = append(v.Hooks, hookRow{w, deliveries.Items})
	}
	return v, live, nil
}

func (s *Server) webhooksPage(c echo.Context) error {
	v, live, err := s.webhooksSheet(c)
	if err != nil {
		return err
	}
	return s.showLive(c, "webhooks", "webhooks.title", live, v)
}

// hookByForm adds a subscription, or switches one on and off.
func (s *Server) hookByForm(c echo.Context) error {
	if s.cfg.Webhooks == nil {
		return notConfigured("webhooks")
	}
	ctx := c.Request().Context()
	w := Webhook{URL: strings.TrimSpace(c.FormValue("url")), Events: words([]string{c.FormValue("events")}), Enabled: true, Note: clip(c.FormValue("note"), 191)}
	if id := c.FormValue("hook"); id != "" {
		list, err := s.cfg.Webhooks.Webhooks(ctx)
		if err != nil {
			return fmt.Errorf("listing webhooks: %w", err)
		}
		i := slices.IndexFunc(list, func(x Webhook) bool { return x.ID == id })
		if i < 0 {
			return fmt.Errorf("the webhook %s: %w", clip(id, 40), jobs.ErrNotFound)
		}
		w = list[i]
		w.Secret, w.Enabled = "", c.FormValue("enabled") == "true"
	}
	saved, err := Webhook{}, error(badField(http.StatusUnprocessableEntity, "url", "The address must begin with https:// and have at most 2000 bytes."))
	if u, bad := url.Parse(w.URL); bad == nil && u.Host != "" && len(w.URL) <= 2000 {
		saved, err = s.cfg.Webhooks.SaveWebhook(ctx, w)
	}
	if err == nil && w.ID != "" {
		about(c, saved.ID, saved.URL)
		return s.back(c, "/admin/webhooks", "webhooks.saved")
	}
	status := http.StatusOK
	problem := ""
	if err != nil {
		p := problemOf(err)
		if status = p.Status; status >= http.StatusInternalServerError {
			return err
		}
		problem = p.in(language(c))
	}
	v, _, listErr := s.webhooksSheet(c)
	if listErr != nil {
		return listErr
	}
	// The secret is in this answer only: no redirection could carry it.
	if v.Secret, v.Problem = saved.Secret, problem; problem != "" {
		v.URL, v.Note, v.Events = w.URL, w.Note, strings.Join(w.Events, ", ")
	}
	about(c, firstOf(saved.ID, w.ID), clip(w.URL, 400))
	sheet := s.sheet(c, "webhooks", "webhooks.title", v)
	sheet.Here = "/admin/webhooks"
	return s.write(c, status, "webhooks", sheet)
}

func (s *Server) deleteHookByForm(c echo.Context) error {
	if s.cfg.Webhooks == nil {
		return notConfigured("webhooks")
	}
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if yes, err := s.sure(c, say(language(c), "webhooks.delete.ask", id), ""); !yes || err != nil {
		return err
	}
	if err := s.cfg.Webhooks.DeleteWebhook(c.Request().Context(), id); err != nil {
		return fmt.Errorf("deleting webhook %s: %w", id, err)
	}
	return s.back(c, "/admin/webhooks", "webhooks.deleted")
}

func (s *Server) redeliverByForm(c echo.Context) error {
	if s.cfg.Webhooks == nil {
		return notConfigured("webhooks")
	}
	id, err := idParam(c)
	if err != nil {
		return err
	}
	receipt, err := s.cfg.Webhooks.Redeliver(c.Request().Context(), id)
	if err != nil {
		return fmt.Errorf("sending delivery %s again: %w", id, err)
	}
	about(c, id, "as "+receipt.UUID)
	return c.Redirect(http.StatusSeeOther, following("/admin/webhooks", receipt.UUID))
}
