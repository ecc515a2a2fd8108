package mail

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

type mailPageData struct {
	Configured   bool
	Status, Text string
	Statuses     []string
	Mails        []Mail
	Next         string
	Cursor       bool
	Suppressed   []Suppression
	Suppressions bool          // configured
	Templates    bool          // configured
	Limits       []web.Setting // mail.rate.* of the configuration
	web.RunActions
}

// mailStatuses are those of the mail log.
var mailStatuses = []string{"accepted", "deferred", "sending", "refused", "bounced", "unknown", "suppressed", "expired"}

// Class is how a mail's status looks: good, bad, or neither yet.
func (m Mail) Class() string { return class(m.Status) }

// Class is how a delivery attempt's status looks.
func (t MailTry) Class() string { return class(t.Status) }

func class(status string) string {
	switch status {
	case "accepted":
		return "ok"
	case "refused", "bounced", "unknown":
		return "failed"
	}
	return ""
}

func (h handlers) mailPage(r *web.Request) error {
	v := mailPageData{Configured: h.log != nil, Status: r.QueryParam("status"),
		Text: redact.Clip(strings.ToValidUTF8(r.QueryParam("text"), ""), 191), Statuses: mailStatuses,
		Suppressions: h.suppressions != nil, Templates: h.templates != nil, Cursor: r.QueryParam("cursor") != ""}
	var live string
	v.RunActions, live = r.RunActions(mailType)
	ctx := r.Ctx()
	if v.Configured {
		list, err := h.log.Mails(ctx, MailQuery{Status: redact.Clip(v.Status, 40), Text: v.Text},
			jobs.Page{Limit: web.PageRows, Cursor: redact.Clip(r.QueryParam("cursor"), 500)})
		if err != nil {
			return phrase.Errorf("listing mail: %w", err)
		}
		v.Mails, v.Next = ops.Each(list.Items, shown(r.View())),
			web.NextPage("/admin/mail", url.Values{"status": {v.Status}, "text": {v.Text}}, list.Next)
	}
	if v.Suppressions {
		list, err := h.suppressions.Suppressions(ctx, jobs.Page{Limit: 100})
		if err != nil {
			return fmt.Errorf("listing suppressions: %w", err)
		}
		v.Suppressed = list.Items
	}
	for _, x := range r.Settings() {
		if strings.HasPrefix(x.Name, "mail.rate") {
			v.Limits = append(v.Limits, x)
		}
	}
	return r.Show(web.PageView{Name: "mail", Data: v, Live: live, Ready: true})
}

// mailShowPage may hold a frame of ours, the preview, and nothing else more.
func (h handlers) mailShowPage(r *web.Request) error {
	m, err := h.oneMail(r)
	if err != nil {
		return err
	}
	r.Response().Header().Set("Content-Security-Policy", web.ContentPolicy+"; frame-src 'self'")
	return r.Show(web.PageView{Name: "letter", Data: shown(r.View())(m), Ready: true})
}

// previewPolicy lets a mail's body have its own styles and pictures that are
// in it; no script runs, nothing is loaded, no form is sent, and the document
// is of no origin.
const previewPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; " +
	"base-uri 'none'; form-action 'none'; sandbox"

// framed answers with a mail's body, for a frame on our pages only.
func framed(r *web.Request, body string) error {
	header := r.Response().Header()
	header.Set("Content-Security-Policy", previewPolicy)
	header.Set("X-Frame-Options", "SAMEORIGIN")
	return r.HTML(http.StatusOK, body)
}

// preview answers with the body of a mail that was sent.
func (h handlers) preview(r *web.Request) error {
	m, err := h.oneMail(r)
	if err != nil {
		return err
	}
	if m.HTML == "" {
		return web.Refuse(http.StatusNotFound, "The mail has no HTML body, or bodies are not kept.")
	}
	return framed(r, m.HTML)
}

func (h handlers) resendByForm(r *web.Request) error {
	m, err := h.oneMail(r)
	if err != nil {
		return err
	}
	if yes, err := r.Sure(r.Text("mail.resend.ask", m.Subject, m.To), ""); !yes || err != nil {
		return err
	}
	receipt, err := h.sendAgain(r, m.ID)
	if err != nil {
		return err
	}
	r.Audit(m.ID, "as "+receipt.UUID)
	return r.Follow("/admin/mail", receipt)
}

func (h handlers) suppressByForm(r *web.Request) error {
	address := strings.TrimSpace(r.FormValue("address"))
	if len(address) < 3 || len(address) > 254 || !strings.Contains(address, "@") {
		return web.RefuseField(http.StatusUnprocessableEntity, "address", "%q is no mail address.",
			redact.Clip(address, 80))
	}
	r.Audit(address, "")
	x := Suppression{Address: address, Reason: cmp.Or(redact.Clip(r.FormValue("reason"), 191), "by "+r.Caller().Name),
		CreatedAt: r.Now().UTC()}
	if err := h.suppressions.Suppress(r.Ctx(), x); err != nil {
		return fmt.Errorf("suppressing an address: %w", err)
	}
	return r.Back("/admin/mail", "mail.suppress.done", address)
}

func (h handlers) unsuppressByForm(r *web.Request) error {
	address := r.FormValue("address")
	r.Audit(redact.Clip(address, 191), "")
	if yes, err := r.Sure(r.Text("mail.unsuppress.ask", redact.Clip(address, 254)), ""); !yes || err != nil {
		return err
	}
	if err := h.suppressions.Unsuppress(r.Ctx(), address); err != nil {
		return fmt.Errorf("taking an address off the suppression list: %w", err)
	}
	return r.Back("/admin/mail", "mail.unsuppress.done", address)
}
