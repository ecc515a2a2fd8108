package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

type mailPageData struct {
	Configured   bool
	Status, Text string
	Statuses     []string
	Mails        []Mail
	Next         string
	Cursor       bool
	Suppressed   []Suppression
	Suppressions bool      // configured
	Templates    bool      // configured
	Limits       []Setting // mail.rate.* of the configuration
	runActionState
}

// mailKind is what sending a mail again makes run.
const mailKind = "mail.send"

// mailStatuses are those of the mail log.
var mailStatuses = []string{"accepted", "deferred", "sending", "refused", "bounced", "unknown", "suppressed", "expired"}

// mailClass is how a state looks: good, bad, or neither yet.
func mailClass(status string) string {
	switch status {
	case "accepted":
		return "ok"
	case "refused", "bounced", "unknown":
		return "failed"
	}
	return ""
}

func (s *Server) mailPage(c echo.Context) error {
	v := mailPageData{Configured: s.cfg.Mail != nil, Status: c.QueryParam("status"), Text: clip(strings.ToValidUTF8(c.QueryParam("q"), ""), 191), Statuses: mailStatuses,
		Suppressions: s.cfg.Suppressions != nil, Templates: s.cfg.Templates != nil, Cursor: c.QueryParam("cursor") != ""}
	var live string
	v.runActionState, live = s.runActions(c, mailKind)
	ctx := c.Request().Context()
	if v.Configured {
		list, err := s.cfg.Mail.Mails(ctx, MailQuery{Status: clip(v.Status, 40), Text: v.Text}, jobs.Page{Limit: pageRows, Cursor: clip(c.QueryParam("cursor"), 500)})
		if err != nil {
			return fmt.Errorf("listing mail: %w", err)
		}
		v.Mails, v.Next = ops.Each(list.Items, s.viewer(c).mail), nextPage("/admin/mail", url.Values{"status": {v.Status}, "q": {v.Text}}, list.Next)
	}
	if v.Suppressions {
		list, err := s.cfg.Suppressions.Suppressions(ctx, jobs.Page{Limit: 100})
		if err != nil {
			return fmt.Errorf("listing suppressions: %w", err)
		}
		v.Suppressed = list.Items
	}
	for _, x := range s.settings() {
		if strings.HasPrefix(x.Name, "mail.rate") {
			v.Limits = append(v.Limits, x)
		}
	}
	return s.showLive(c, "mail", "mail.title", live, v)
}

func (s *Server) oneMail(c echo.Context) (Mail, error) {
	_, m, err := onID(c, "looking up mail %s", s.cfg.Mail.Mail)
	return m, err
}

// mailShowPage may hold a frame of ours, the preview, and nothing else more.
func (s *Server) mailShowPage(c echo.Context) error {
	m, err := s.oneMail(c)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Security-Policy", contentPolicy+"; frame-src 'self'")
	return s.show(c, "letter", "letter.title", s.viewer(c).mail(m))
}

// previewPolicy lets a mail's body have its own styles and pictures that are
// in it; no script runs, nothing is loaded, no form is sent, and the document
// is of no origin.
const previewPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox"

// framed answers with a mail's body, for a frame on our pages only.
func framed(c echo.Context, body string) error {
	h := c.Response().Header()
	h.Set("Content-Security-Policy", previewPolicy)
	h.Set("X-Frame-Options", "SAMEORIGIN")
	return c.HTML(http.StatusOK, body)
}

// preview answers with the body of a mail that was sent.
func (s *Server) preview(c echo.Context) error {
	m, err := s.oneMail(c)
	if err != nil {
		return err
	}
	if m.HTML == "" {
		return httpError(http.StatusNotFound, "The mail has no HTML body, or bodies are not kept.")
	}
	return framed(c, m.HTML)
}

func (s *Server) resendByForm(c echo.Context) error {
	m, err := s.oneMail(c)
	if err != nil {
		return err
	}
	if yes, err := s.sure(c, translate(language(c), "mail.resend.ask", m.Subject, m.To), ""); !yes || err != nil {
		return err
	}
	receipt, err := s.sendAgain(c, m.ID)
	if err != nil {
		return err
	}
	setAuditTarget(c, m.ID, "as "+receipt.UUID)
	return c.Redirect(http.StatusSeeOther, following("/admin/mail", receipt.UUID))
}

func (s *Server) suppressByForm(c echo.Context) error {
	address := strings.TrimSpace(c.FormValue("address"))
	if len(address) < 3 || len(address) > 254 || !strings.Contains(address, "@") {
		return fieldError(http.StatusUnprocessableEntity, "address", "%q is no mail address.", clip(address, 80))
	}
	setAuditTarget(c, address, "")
	x := Suppression{Address: address, Reason: firstOf(clip(c.FormValue("reason"), 191), "by "+who(c).Name), CreatedAt: s.cfg.Now().UTC()}
	if err := s.cfg.Suppressions.Suppress(c.Request().Context(), x); err != nil {
		return fmt.Errorf("suppressing an address: %w", err)
	}
	return s.back(c, "/admin/mail", "mail.suppress.done", address)
}

func (s *Server) unsuppressByForm(c echo.Context) error {
	address := c.FormValue("address")
	setAuditTarget(c, clip(address, 191), "")
	if yes, err := s.sure(c, translate(language(c), "mail.unsuppress.ask", clip(address, 254)), ""); !yes || err != nil {
		return err
	}
	if err := s.cfg.Suppressions.Unsuppress(c.Request().Context(), address); err != nil {
		return fmt.Errorf("taking an address off the suppression list: %w", err)
	}
	return s.back(c, "/admin/mail", "mail.unsuppress.done", address)
}
