package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

type webhooksPageData struct {
	Configured bool
	Hooks      []hookRow
	Secret     string // of the one that was just made, shown once
	Problem    string
	URL, Note  string
	Events     string
	runActionState
}

type hookRow struct {
	Webhook
	Deliveries []Delivery
}

const hookDeliveries = 10

// deliveryKind is what sending a delivery again makes run.
const deliveryKind = "webhook.deliver"

func (s *Server) webhooksPageData(c echo.Context) (webhooksPageData, string, error) {
	v := webhooksPageData{Configured: s.cfg.Webhooks != nil}
	var live string
	v.runActionState, live = s.runActions(c, deliveryKind)
	if !v.Configured {
		return v, live, nil
	}
	ctx := c.Request().Context()
	list, err := s.cfg.Webhooks.Webhooks(ctx)
	if err != nil {
		return v, live, fmt.Errorf("listing webhooks: %w", err)
	}
	for _, w := range list {
		deliveries, err := s.cfg.Webhooks.Deliveries(ctx, w.ID, jobs.Page{Limit: hookDeliveries})
		if err != nil {
			return v, live, fmt.Errorf("listing deliveries: %w", err)
		}
		v.Hooks = append(v.Hooks, hookRow{s.viewer(c).webhook(w), ops.Each(deliveries.Items, s.viewer(c).delivery)})
	}
	return v, live, nil
}

func (s *Server) webhooksPage(c echo.Context) error {
	v, live, err := s.webhooksPageData(c)
	if err != nil {
		return err
	}
	return s.showLive(c, "webhooks", "webhooks.title", live, v)
}

// hookByForm adds a subscription, or switches one on and off.
func (s *Server) hookByForm(c echo.Context) error {
	ctx := c.Request().Context()
	w := Webhook{URL: strings.TrimSpace(c.FormValue("url")), Events: strings.FieldsFunc(c.FormValue("events"), func(r rune) bool { return r == ',' || r == ' ' }), Enabled: true, Note: clip(c.FormValue("note"), 191)}
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
	saved, err := Webhook{}, error(fieldError(http.StatusUnprocessableEntity, "url", "The address must begin with https:// and have at most 2000 bytes."))
	if u, bad := url.Parse(w.URL); bad == nil && u.Host != "" && len(w.URL) <= 2000 {
		saved, err = s.cfg.Webhooks.SaveWebhook(ctx, w)
	}
	if err == nil && w.ID != "" {
		setAuditTarget(c, saved.ID, redact.Address(redact.Readers, saved.URL))
		return s.back(c, "/admin/webhooks", "webhooks.saved")
	}
	status := http.StatusOK
	problem := ""
	if err != nil {
		p := s.problemOf(err)
		if status = p.Status; status >= http.StatusInternalServerError {
			return err
		}
		problem = p.in(language(c))
	}
	v, _, listErr := s.webhooksPageData(c)
	if listErr != nil {
		return listErr
	}
	// The secret is in this answer only: no redirection could carry it.
	if v.Secret, v.Problem = saved.Secret, problem; problem != "" {
		v.URL, v.Note, v.Events = w.URL, w.Note, strings.Join(w.Events, ", ")
	}
	setAuditTarget(c, firstOf(saved.ID, w.ID), clip(redact.Address(redact.Readers, w.URL), 400))
	pageData := s.pageView(c, "webhooks", "webhooks.title", v)
	pageData.Here = "/admin/webhooks"
	return s.write(c, status, "webhooks", pageData)
}

func (s *Server) deleteHookByForm(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if yes, err := s.sure(c, translate(language(c), "webhooks.delete.ask", id), ""); !yes || err != nil {
		return err
	}
	if err := s.cfg.Webhooks.DeleteWebhook(c.Request().Context(), id); err != nil {
		return fmt.Errorf("deleting webhook %s: %w", id, err)
	}
	return s.back(c, "/admin/webhooks", "webhooks.deleted")
}

func (s *Server) redeliverByForm(c echo.Context) error {
	if err := s.mayRunKind(c, deliveryKind); err != nil {
		return err
	}
	id, receipt, err := onID(c, "sending delivery %s again", s.cfg.Webhooks.Redeliver)
	if err != nil {
		return err
	}
	setAuditTarget(c, id, "as "+receipt.UUID)
	return c.Redirect(http.StatusSeeOther, following("/admin/webhooks", receipt.UUID))
}
