package main

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// webSitemap shows the files of the sitemap, and what IndexNow was told.
type webSitemap struct {
	dir   string
	runs  web.History
	hosts string // whom sitemap.indexnow tells
}

// mapsShown bounds how many files are read for a page.
const mapsShown = 200

// submissionsShown is how many runs of sitemap.indexnow are shown.
const submissionsShown = 30

// submissions are the last runs that told search engines, or tried to.
func (s webSitemap) submissions(ctx context.Context) ([]web.Submission, error) {
	runs, err := s.runs.Runs(ctx, jobs.Filter{Kinds: []string{sitemap.IndexNow.Name}}, jobs.Page{Limit: submissionsShown})
	var list []web.Submission
	for _, r := range runs.Items {
		var did sitemap.Submission
		if len(r.Result) > 0 && json.Unmarshal(r.Result, &did) != nil {
			continue // of another version
		}
		x := web.Submission{At: r.EndedAt, Host: s.hosts, URLs: did.Added + did.Changed + did.Deleted, Note: strings.Join(append(did.Refusals, r.Error), " ")}
		switch {
		case r.Outcome != jobs.Completed.String():
			x.Failed = true
		case did.Calls > 0:
			x.Status = http.StatusOK
		default:
			x.URLs, x.Note = 0, did.Why
		}
		x.Note = strings.TrimSpace(x.Note)
		list = append(list, x)
	}
	return list, err
}

func (s webSitemap) SitemapStatus(ctx context.Context) (web.SitemapStatus, error) {
	var status web.SitemapStatus
	var err error
	if status.Submissions, err = s.submissions(ctx); err != nil {
		return status, err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return status, err
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), "sitemap*.xml")
	if err != nil {
		return status, err
	}
	for _, name := range names[:min(len(names), mapsShown)] {
		file, err := sitemapFile(root, name)
		if err != nil {
			return status, err
		}
		status.Files = append(status.Files, file)
	}
	return status, nil
}

func sitemapFile(root *os.Root, name string) (web.SitemapFile, error) {
	f, err := root.Open(name)
	if err != nil {
		return web.SitemapFile{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return web.SitemapFile{}, err
	}
	// sitemaps.org allows 50 MiB a file.
	text, err := io.ReadAll(io.LimitReader(f, 50<<20))
	return web.SitemapFile{Name: name, URLs: strings.Count(string(text), "<loc>"), Size: info.Size(), Modified: info.ModTime()}, err
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
