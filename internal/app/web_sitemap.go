package app

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	sitemappage "github.com/cmsjobs/cmsjobs/internal/web/feature/sitemap"
)

// webSitemap shows the files of the sitemap, and what was sent to IndexNow.
type webSitemap struct {
	handler *sitemap.Handler
	runs    web.History
	hosts   string // whom sitemap.indexnow tells
}

// submissionsShown is how many runs of sitemap.indexnow are shown.
const submissionsShown = 30

// submissions are the last runs that told search engines, or tried to.
func (s webSitemap) submissions(ctx context.Context) ([]sitemappage.Submission, error) {
	runs, err := s.runs.Runs(ctx, jobs.Filter{Types: []string{sitemap.IndexNow.Name}},
		jobs.Page{Limit: submissionsShown})
	var list []sitemappage.Submission
	for _, r := range runs.Items {
		var did sitemap.Submission
		if len(r.Result) > 0 && json.Unmarshal(r.Result, &did) != nil {
			continue // of another version
		}
		x := sitemappage.Submission{At: r.EndedAt, Host: s.hosts, URLs: did.Added + did.Changed + did.Deleted,
			Note: strings.Join(append(did.Refusals, r.Error), " ")}
		switch {
		case r.Outcome != jobs.Completed.String():
			x.Failed = true
		case did.Calls > 0:
			x.Status = did.Status
		default:
			x.URLs, x.Note = 0, did.Why
		}
		x.Note = strings.TrimSpace(x.Note)
		list = append(list, x)
	}
	return list, err
}

func (s webSitemap) SitemapStatus(ctx context.Context) (sitemappage.SitemapStatus, error) {
	list, err := s.submissions(ctx)
	if err != nil {
		return sitemappage.SitemapStatus{}, err
	}
	published, err := s.handler.Published(ctx)
	status := sitemappage.SitemapStatus{Target: published.Target, FileCount: published.Files, URLs: published.URLs,
		PublishedAt: published.At, Submissions: list}
	for _, f := range published.Listed {
		status.Files = append(status.Files, sitemappage.SitemapFile{Name: f.Name, URLs: f.URLs, Size: f.Bytes,
			Modified: f.Modified})
	}
	return status, err
}

// hostsOf are the hosts of addresses, for people.
func hostsOf(addresses []string) string {
	var hosts []string
	for _, a := range addresses {
		if u, err := url.Parse(a); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	return strings.Join(hosts, ", ")
}
