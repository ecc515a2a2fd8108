package config

import (
	"os"
	"path/filepath"
	"regexp"
)

// CMS says where the site is that we work for.
type CMS struct {
	Dir  string `koanf:"dir"`
	URL  string `koanf:"url"`
	Zone string `koanf:"zone"`
	// Models is content of plugins, beside pages, posts, categories and tags.
	Models []Model `koanf:"models"`
}

// Model is one kind of content and the table that it is in.
type Model struct {
	Name      string `koanf:"name"`
	Table     string `koanf:"table"` // without the prefix; the name when empty
	Class     string `koanf:"class"` // of slugs.reference_type
	Prefix    string `koanf:"prefix"`
	Status    string `koanf:"status_column"`
	Published string `koanf:"published"`
	Title     string `koanf:"title_column"`
	Image     string `koanf:"image_column"`
	Date      string `koanf:"date_column"` // of drafts that are to be published then
	// Path makes addresses of columns ("blog/{slug}"), for applications without slugs.
	Path    string            `koanf:"path"`
	Where   map[string]string `koanf:"where"`
	Visible string            `koanf:"visible_column"`
}

var columnForm = regexp.MustCompile(`^[A-Za-z0-9_]{0,64}$`)

func defaultCMS() CMS { return CMS{} }

func (c CMS) check(r *report) {
	if c.Dir != "" {
		if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
			r.add("cms/dir", "there is no folder %q", c.Dir)
		} else if _, err := filepath.Abs(c.Dir); err != nil {
			r.add("cms/dir", "%v", err)
		}
	}
	r.webURL("cms/url", c.URL)
	r.zone("cms/zone", c.Zone)
	for _, m := range c.Models {
		if m.Name == "" || m.Class == "" && m.Path == "" {
			r.add("cms/models", "the model %q needs a name, and a class (Botble\\\\Blog\\\\Models\\\\Post) or a path "+
				"(blog/{slug})", m.Name)
		}
		for _, column := range []string{m.Name, m.Table, m.Status, m.Title, m.Image, m.Date, m.Visible} {
			if !columnForm.MatchString(column) {
				r.add("cms/models", "%q is no name of a table or column", column)
			}
		}
	}
}
