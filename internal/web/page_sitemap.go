package web

import (
	"fmt"

	"github.com/labstack/echo/v4"
)

type sitemapSheet struct {
	Configured bool
	Status     SitemapStatus
	started
}

func (s *Server) sitemapPage(c echo.Context) error {
	v := sitemapSheet{Configured: s.cfg.Sitemap != nil}
	var live string
	v.started, live = s.offer(c, "sitemap.generate", "sitemap.indexnow")
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
