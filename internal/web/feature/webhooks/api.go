package webhooks

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

func (h handlers) list(r *web.Request) error {
	list, err := h.port.Webhooks(r.Ctx())
	if err != nil {
		return fmt.Errorf("listing webhooks: %w", err)
	}
	view := r.View()
	return r.JSON(http.StatusOK, WebhookList{
		Items: ops.Each(list, func(w Webhook) Webhook { return shownWebhook(view, w) })})
}

func (h handlers) add(r *web.Request) error { return h.answerSaved(r, "", http.StatusCreated) }

func (h handlers) change(r *web.Request) error {
	id, err := r.ID()
	if err != nil {
		return err
	}
	return h.answerSaved(r, id, http.StatusOK)
}

func (h handlers) answerSaved(r *web.Request, id string, status int) error {
	var w Webhook
	if err := r.Decode(&w); err != nil {
		return err
	}
	w.ID = id
	if w.URL == "" || len(w.URL) > 2000 {
		return web.RefuseField(http.StatusUnprocessableEntity, "url", "url must be an address of at most 2000 bytes.")
	}
	saved, err := h.port.SaveWebhook(r.Ctx(), w)
	if err != nil {
		return fmt.Errorf("saving a webhook: %w", err)
	}
	r.Audit(saved.ID, redact.Address(redact.Readers, saved.URL))
	if status != http.StatusCreated {
		saved.Secret = ""
	}
	if saved.Events == nil {
		saved.Events = []string{}
	}
	return r.JSON(status, saved)
}

func (h handlers) remove(r *web.Request) error {
	id, err := r.ID()
	if err != nil {
		return err
	}
	if err := h.port.DeleteWebhook(r.Ctx(), id); err != nil {
		return fmt.Errorf("deleting webhook %s: %w", id, err)
	}
	return r.NoContent(http.StatusNoContent)
}

func (h handlers) deliveries(r *web.Request) error {
	id, err := r.ID()
	if err != nil {
		return err
	}
	view := r.View()
	return web.AnswerList(r, "deliveries", func(d Delivery) Delivery { return shownDelivery(view, d) },
		func(p jobs.Page) (jobs.List[Delivery], error) { return h.port.Deliveries(r.Ctx(), id, p) })
}

func (h handlers) redeliver(r *web.Request) error {
	if err := r.MayRunType(deliveryType); err != nil {
		return err
	}
	id, receipt, err := web.OnID(r, "sending delivery %s again", h.port.Redeliver)
	if err != nil {
		return err
	}
	return r.AnswerJob(id, deliveryType, receipt)
}

// shownWebhook is a subscription without its secret. Its address may be one, too.
func shownWebhook(v ops.Viewer, w Webhook) Webhook {
	w.Secret, w.URL, w.Note = "", redact.Address(v.To, w.URL), v.Text(w.Note)
	return w
}

// shownDelivery is one sending; what was sent and answered is for operators.
func shownDelivery(v ops.Viewer, d Delivery) Delivery {
	d.Answer = v.Text(d.Answer)
	if json.Valid([]byte(d.Request)) {
		d.Request = string(v.Payload(deliveryType, []byte(d.Request)))
	} else { // it was cut
		d.Request = v.Text(d.Request)
	}
	if v.To < redact.Operators {
		d.Request, d.Answer = "", ""
	}
	return d
}
