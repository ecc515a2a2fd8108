package web

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
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
func (s *Server) templatesPage(c echo.Context) error {
	v := templatePageData{Configured: s.cfg.Templates != nil, Name: clip(c.QueryParam("name"), 191), Locale: clip(c.QueryParam("locale"), 12)}
	if v.Configured {
		var err error
		if v.Templates, err = s.cfg.Templates.Templates(c.Request().Context()); err != nil {
			return fmt.Errorf("listing mail templates: %w", err)
		}
	}
	if v.Configured && v.Name != "" {
		shown, err := s.cfg.Templates.PreviewTemplate(c.Request().Context(), v.Name, v.Locale)
		if err != nil {
			return fmt.Errorf("previewing the mail template %s: %w", v.Name, err)
		}
		v.Shown = &shown
		v.Body = "/admin/mail/templates/body?" + url.Values{"name": {v.Name}, "locale": {v.Locale}}.Encode()
	}
	c.Response().Header().Set("Content-Security-Policy", contentPolicy+"; frame-src 'self'")
	return s.show(c, "templates", "templates.title", v)
}

// templateBody answers with the HTML of a template, filled in.
func (s *Server) templateBody(c echo.Context) error {
	name := clip(c.QueryParam("name"), 191)
	shown, err := s.cfg.Templates.PreviewTemplate(c.Request().Context(), name, clip(c.QueryParam("locale"), 12))
	if err != nil {
		return fmt.Errorf("previewing the mail template %s: %w", name, err)
	}
	if shown.HTML == "" {
		return httpError(http.StatusNotFound, "The template has no HTML.")
	}
	return framed(c, shown.HTML)
}
