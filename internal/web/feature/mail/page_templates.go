package mail

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// templatePageData is the page of mail templates: the list, and one filled in.
type templatePageData struct {
	Configured   bool
	Templates    []MailTemplate
	Name, Locale string
	Shown        *TemplatePreview
	Body         string // address of the frame
}

// templatesPage may hold a frame of ours, the preview, and nothing else more.
func (h handlers) templatesPage(r *web.Request) error {
	v := templatePageData{Configured: h.templates != nil, Name: redact.Clip(r.QueryParam("name"), 191),
		Locale: redact.Clip(r.QueryParam("locale"), 12)}
	if v.Configured {
		var err error
		if v.Templates, err = h.templates.Templates(r.Ctx()); err != nil {
			return fmt.Errorf("listing mail templates: %w", err)
		}
	}
	if v.Configured && v.Name != "" {
		shown, err := h.templates.PreviewTemplate(r.Ctx(), v.Name, v.Locale)
		if err != nil {
			return fmt.Errorf("previewing the mail template %s: %w", v.Name, err)
		}
		v.Shown = &shown
		v.Body = "/admin/mail/templates/body?" + url.Values{"name": {v.Name}, "locale": {v.Locale}}.Encode()
	}
	r.Response().Header().Set("Content-Security-Policy", web.ContentPolicy+"; frame-src 'self'")
	return r.Show(web.PageView{Name: "templates", Data: v, Ready: true})
}

// templateBody answers with the HTML of a template, filled in.
func (h handlers) templateBody(r *web.Request) error {
	name := redact.Clip(r.QueryParam("name"), 191)
	shown, err := h.templates.PreviewTemplate(r.Ctx(), name, redact.Clip(r.QueryParam("locale"), 12))
	if err != nil {
		return fmt.Errorf("previewing the mail template %s: %w", name, err)
	}
	if shown.HTML == "" {
		return web.Refuse(http.StatusNotFound, "The template has no HTML.")
	}
	return framed(r, shown.HTML)
}
