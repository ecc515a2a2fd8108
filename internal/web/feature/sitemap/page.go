package sitemap

import (
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/web"
)

type sitemapPageData struct {
	Configured bool
	Status     SitemapStatus
	web.RunActions
}

func (h handlers) sitemapPage(r *web.Request) error {
	v := sitemapPageData{Configured: h.port != nil}
	var live string
	v.RunActions, live = r.RunActions("sitemap.generate", "sitemap.indexnow")
	ready := true
	if v.Configured {
		var err error
		if v.Status, ready, err = web.Cached(r, "sitemap", h.port.SitemapStatus); err != nil {
			return fmt.Errorf("looking at the sitemap: %w", err)
		}
		v.Status = shown(r.View(), v.Status)
	}
	return r.Show(web.PageView{Name: "sitemap", Data: v, Live: live, Ready: ready})
}
