package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/publish"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// publishHandler joins scheduled publishing.
func publishHandler(registry *jobs.Registry, r *Services) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h, err := publish.New(publish.Config{Site: r.Site, DB: r.OwnDB, Queue: r, Models: r.publishModels(), Effects: r.published, Now: r.Now, Logger: r.Log,
		Every: r.Config.Publish.Every, Name: fmt.Sprintf("%.40s:%d", host, os.Getpid())})
	if err != nil {
		return err
	}
	h.Register(registry)
	r.Handlers.publish = h
	return nil
}

// models are the content of plugins that the configuration names.
func (r *Services) models() []cms.Model {
	var list []cms.Model
	for _, m := range r.Config.CMS.Models {
		list = append(list, cms.Model{Name: m.Name, Table: m.Table, Class: m.Class, Prefix: m.Prefix, StatusColumn: m.Status, Published: m.Published,
			TitleColumn: m.Title, ImageColumn: m.Image})
	}
	return list
}

// publishModels is what may be published: the stock content and the configured
// one, each with the column of its date.
func (r *Services) publishModels() []publish.Model {
	list := publish.Models()
	for i, m := range r.models() {
		list = append(list, publish.Model{Model: m, DateColumn: r.Config.CMS.Models[i].Date})
	}
	for i := range list {
		if column := r.Config.Publish.Dates[list[i].Name]; column != "" {
			list[i].DateColumn = column
		}
	}
	return list
}

// CancelJob implements publish.Queue.
func (r *Services) CancelJob(ctx context.Context, uuid string) error {
	_, err := r.History.Cancel(ctx, jobs.Filter{UUIDs: []string{uuid}}, 1)
	return err
}

// settleEdits is how long edits gather before the sitemap is made again.
const settleEdits = 20 * time.Second

// published says what follows a publication or an edit. A new sitemap tells the
// search engines of what changed in it by itself; many edits make one sitemap.
func (r *Services) published(ctx context.Context, changes []publish.Change) ([]jobs.Spec, error) {
	var next []jobs.Spec
	if r.Handlers.Sitemap != nil {
		next = append(next, sitemap.Generate.New(sitemap.GeneratePayload{}).In(settleEdits))
	}
	for _, c := range changes {
		if !c.Published { // the CMS cleared its caches when the editor saved
			continue
		}
		next = append(next, cache.Clear.New(cache.ClearPayload{Tags: []string{c.Model}}))
		if to := r.Config.Mail.Admin; r.Config.Publish.Mail && len(to) > 0 {
			data := map[string]any{"title": c.Title, "url": c.URL, "publishedAt": c.At.Format("2006-01-02 15:04")}
			next = append(next, mail.Send.New(mail.SendPayload{To: to, Template: "content-published", Data: data}))
		}
		told, err := r.deliveries(ctx, "content.published", map[string]any{"model": c.Model, "id": c.ID, "title": c.Title, "url": c.URL})
		if err != nil {
			return nil, err
		}
		next = append(next, told...)
	}
	return next, nil
}
