package sitemap

import (
	"fmt"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

func (h handlers) sitemapStatus(r *web.Request) error {
	status, err := h.port.SitemapStatus(r.Ctx())
	if err != nil {
		return fmt.Errorf("looking at the sitemap: %w", err)
	}
	return r.JSON(http.StatusOK, shown(r.View(), status))
}

func shown(v ops.Viewer, s SitemapStatus) SitemapStatus {
	s.Files = ops.Each(s.Files, func(f SitemapFile) SitemapFile { return f })
	s.Submissions = ops.Each(s.Submissions, func(x Submission) Submission { x.Note = v.Text(x.Note); return x })
	return s
}
