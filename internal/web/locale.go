package web

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/locale"
	"github.com/cmsjobs/cmsjobs/templates"
)

// Texts are the texts of the pages: the core's and those of the features.
func Texts(features []Feature) (*locale.Catalog, error) {
	core, err := fs.Sub(templates.Admin(), "texts")
	if err != nil {
		return nil, err
	}
	folders := []fs.FS{core}
	for _, f := range features {
		if f.Files != nil {
			folders = append(folders, f.Files)
		}
	}
	catalog, err := locale.Load(folders...)
	if err != nil {
		return nil, fmt.Errorf("reading the texts of the pages: %w", err)
	}
	return catalog, nil
}

// printer writes texts in the caller's language: their choice, else the first
// that their browser asks for.
func (s *Server) printer(c echo.Context) locale.Printer {
	if cookie, err := c.Cookie(languageCookie); err == nil && s.texts.Known(cookie.Value) {
		return s.texts.In(cookie.Value)
	}
	for _, part := range strings.Split(c.Request().Header.Get("Accept-Language"), ",") {
		code, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		code, _, _ = strings.Cut(strings.ToLower(code), "-")
		if s.texts.Known(code) {
			return s.texts.In(code)
		}
	}
	return s.texts.In(locale.Languages()[0].Code)
}

// in is a problem's detail in a language.
func (p *Problem) in(lang locale.Printer) string {
	if p.form == "" || fmt.Sprintf(p.form, p.args...) != p.Detail {
		return p.Detail // something was added to it
	}
	return lang.Sentence(p.form, p.args)
}
