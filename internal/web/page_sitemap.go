package web

import (
	"fmt"

	"github.com/labstack/echo/v4"
)

type sitemapPageData struct {
	Configured bool
	Status     SitemapStatus
	runActionState
}

func (s *Server) sitemapPage(c echo.Context) error {
	v := sitemapPageData{Configured: s.cfg.Sitemap != nil}
	var live string
	v.runActionState, live = s.runActions(c, "sitemap.generate", "sitemap.indexnow")
	ready := true
	if v.Configured {
		var err error
		if v.Status, ready, err = s.sitemapKept(c.Request().Context()); err != nil {
			return fmt.Errorf("looking at the sitemap: %w", err)
		}
		v.Status = s.viewer(c).sitemap(v.Status)
	}
	return s.showSoon(c, "sitemap", "sitemap.title", live, ready, v)
}
