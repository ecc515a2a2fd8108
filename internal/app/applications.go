package app

import (
	"context"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// without says whether an area of job types cannot work beside this application,
// and notes why: a plain Laravel has no pages, no pictures and nothing to publish
// that this service knows of.
func (r *Services) without(area string, types ...string) (bool, error) {
	if r.everything || r.tablesUnknown() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	names, err := r.Site.TableNames(ctx)
	if err != nil {
		return false, err
	}
	reason := missingFor(area, r.models(), func(table string) bool {
		return slices.Contains(names, r.Site.Table(table))
	})
	if reason == "" {
		return false, nil
	}
	if r.Off == nil {
		r.Off = map[string]string{}
	}
	for _, name := range types {
		r.Off[name] = reason
	}
	r.Log.Debug("an area is off: the database has none of its tables", "event", "cms.area_off", "area", area,
		"reason", reason)
	return true, nil
}

// tablesUnknown says that nobody named the application: a database alone may be one
// that is filled later.
func (r *Services) tablesUnknown() bool { return r.Site.Root == "" }

// missingFor says what an area needs that the database does not have.
func missingFor(area string, models []cms.Model, has func(table string) bool) string {
	stock := func(m cms.Model) bool { return has(m.WithDefaults().Table) }
	switch area {
	case "media":
		if !has("media_files") {
			return "the database has no table media_files of a CMS"
		}
		return ""
	case "publish":
		models = slices.DeleteFunc(slices.Clone(models), func(m cms.Model) bool { return m.Class == "" })
	default:
		if slices.ContainsFunc(models, func(m cms.Model) bool { return m.Path != "" && stock(m) }) {
			return ""
		}
	}
	if has("slugs") && slices.ContainsFunc(append(cms.Models(), models...), stock) {
		return ""
	}
	if area == "publish" {
		return "the database has no tables of a CMS's content"
	}
	return "the database has no tables of a CMS's content; name the application's own tables in cms.models " +
		"(cmsjobs sitemap generate --dry-run shows what they give)"
}
