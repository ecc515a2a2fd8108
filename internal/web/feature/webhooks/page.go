package webhooks

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

const path = "/admin/webhooks"

// pageData is what page_webhooks.html shows.
type pageData struct {
	Configured bool
	Hooks      []hookRow
	Secret     string // of the one that was just made, shown once
	Problem    string
	URL, Note  string
	Events     string
	web.RunActions
}

type hookRow struct {
	Webhook
	Deliveries []Delivery
}

const deliveriesShown = 10

func (h handlers) data(r *web.Request) (v pageData, live string, err error) {
	v.Configured = h.port != nil
	v.RunActions, live = r.RunActions(deliveryType)
	if !v.Configured {
		return v, live, nil
	}
	list, err := h.port.Webhooks(r.Ctx())
	if err != nil {
		return v, live, fmt.Errorf("listing webhooks: %w", err)
	}
	view := r.View()
	for _, w := range list {
		deliveries, err := h.port.Deliveries(r.Ctx(), w.ID, jobs.Page{Limit: deliveriesShown})
		if err != nil {
			return v, live, fmt.Errorf("listing deliveries: %w", err)
		}
		row := hookRow{Webhook: shownWebhook(view, w)}
		row.Deliveries = ops.Each(deliveries.Items, func(d Delivery) Delivery { return shownDelivery(view, d) })
		v.Hooks = append(v.Hooks, row)
	}
	return v, live, nil
}

func (h handlers) page(r *web.Request) error {
	v, live, err := h.data(r)
	if err != nil {
		return err
	}
	return r.Show(web.PageView{Name: "webhooks", Data: v, Live: live, Ready: true})
}

// save adds a subscription, or switches one on and off.
func (h handlers) save(r *web.Request) error {
	w, err := h.form(r)
	if err != nil {
		return err
	}
	saved, err := Webhook{}, web.RefuseField(http.StatusUnprocessableEntity, "url",
		"The address must begin with https:// and have at most 2000 bytes.")
	if u, bad := url.Parse(w.URL); bad == nil && u.Host != "" && len(w.URL) <= 2000 {
		saved, err = h.port.SaveWebhook(r.Ctx(), w)
	}
	if err == nil && w.ID != "" {
		r.Audit(saved.ID, redact.Address(redact.Readers, saved.URL))
		return r.Back(path, "webhooks.saved")
	}
	status, problem := http.StatusOK, ""
	if err != nil {
		var ours bool
		if status, problem, ours = r.Refusal(err); ours {
			return err
		}
	}
	v, _, listErr := h.data(r)
	if listErr != nil {
		return listErr
	}
	// The secret is in this answer only: no redirection could carry it.
	if v.Secret, v.Problem = saved.Secret, problem; problem != "" {
		v.URL, v.Note, v.Events = w.URL, w.Note, strings.Join(w.Events, ", ")
	}
	r.Audit(cmp.Or(saved.ID, w.ID), redact.Clip(redact.Address(redact.Readers, w.URL), 400))
	return r.Show(web.PageView{Name: "webhooks", Data: v, Ready: true, Status: status, Here: path})
}

// form reads the form: a new webhook, or one that is there with its switch.
func (h handlers) form(r *web.Request) (Webhook, error) {
	id := r.FormValue("hook")
	if id == "" {
		return Webhook{URL: strings.TrimSpace(r.FormValue("url")), Events: r.Words("events"), Enabled: true,
			Note: redact.Clip(r.FormValue("note"), 191)}, nil
	}
	list, err := h.port.Webhooks(r.Ctx())
	if err != nil {
		return Webhook{}, fmt.Errorf("listing webhooks: %w", err)
	}
	i := slices.IndexFunc(list, func(x Webhook) bool { return x.ID == id })
	if i < 0 {
		return Webhook{}, fmt.Errorf("the webhook %s: %w", redact.Clip(id, 40), jobs.ErrNotFound)
	}
	w := list[i]
	w.Secret, w.Enabled = "", r.FormValue("enabled") == "true"
	return w, nil
}

func (h handlers) removeByForm(r *web.Request) error {
	id, err := r.ID()
	if err != nil {
		return err
	}
	if yes, err := r.Sure(r.Text("webhooks.delete.ask", id), ""); !yes || err != nil {
		return err
	}
	if err := h.port.DeleteWebhook(r.Ctx(), id); err != nil {
		return fmt.Errorf("deleting webhook %s: %w", id, err)
	}
	return r.Back(path, "webhooks.deleted")
}

func (h handlers) redeliverByForm(r *web.Request) error {
	if err := r.MayRunType(deliveryType); err != nil {
		return err
	}
	id, receipt, err := web.OnID(r, "sending delivery %s again", h.port.Redeliver)
	if err != nil {
		return err
	}
	r.Audit(id, "as "+receipt.UUID)
	return r.Follow(path, receipt)
}
