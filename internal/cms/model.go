package cms

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Model is one kind of content: a table of the CMS whose rows have a page of
// their own on the site. Empty columns mean the CMS's usual names.
type Model struct {
	// Name is the word for it in settings, results and file names: "posts".
	Name string
	// Table without the prefix; Name when empty.
	Table string
	// Class is what slugs.reference_type and others say: Botble\Blog\Models\Post.
	Class string
	// Prefix is what the CMS's code puts before the slug where neither the row
	// nor a setting says otherwise.
	Prefix string
	// StatusColumn and Published say which rows are public: "status" =
	// "published" when empty.
	StatusColumn, Published string
	// ImageColumn and TitleColumn are read on demand: "image", "name" when empty.
	ImageColumn, TitleColumn string
	// Path makes an item's address from columns of its table: "blog/{slug}". It is for
	// content of applications without the CMS's table slugs; such a model needs no
	// Class.
	Path string
	// Where says which rows are public besides: a column and its value.
	Where map[string]string
	// VisibleColumn is a date from which a row is public; NULL is not public. "" is none.
	VisibleColumn string
	// Scheduled content has its publication date in created_at: a row that is
	// dated ahead is not public yet.
	Scheduled bool
}

// PageModel is the CMS's pages, of which one may be the homepage.
func PageModel() Model { return Model{Name: "pages", Class: `Botble\Page\Models\Page`}.WithDefaults() }

// Models lists the content that a stock CMS has, in the order of its sitemap.
func Models() []Model {
	list := []Model{
		PageModel(),
		{Name: "posts", Class: `Botble\Blog\Models\Post`, Scheduled: true},
		{Name: "categories", Class: `Botble\Blog\Models\Category`},
		{Name: "tags", Class: `Botble\Blog\Models\Tag`, Prefix: "tag"},
		{Name: "galleries", Class: `Botble\Gallery\Models\Gallery`, Prefix: "galleries"},
	}
	for i := range list {
		list[i] = list[i].WithDefaults()
	}
	return list
}

// WithDefaults fills in the CMS's usual names.
func (m Model) WithDefaults() Model {
	for _, f := range []struct {
		field    *string
		fallback string
	}{
		{&m.Table, m.Name}, {&m.StatusColumn, "status"}, {&m.Published, "published"}, {&m.ImageColumn, "image"},
		{&m.TitleColumn, "name"},
	} {
		if *f.field == "" {
			*f.field = f.fallback
		}
	}
	return m
}

var modelName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,60}$`)

// Validate says what is wrong with a model of the configuration.
func (m Model) Validate() error {
	m = m.WithDefaults()
	switch {
	case !modelName.MatchString(m.Name):
		return fmt.Errorf("the model's name %q: use lower-case letters, digits and dashes, as it becomes part of "+
			"file names", m.Name)
	case !tableName.MatchString(m.Table):
		return fmt.Errorf("the model %s names the table %q, which is no table name", m.Name, m.Table)
	case m.Path != "":
		return m.validatePath()
	case m.Class == "":
		return fmt.Errorf("the model %s needs its PHP class, as slugs.reference_type has it", m.Name)
	}
	return nil
}

// ListPage is a page that a plugin of the CMS makes to list its items. It has no row.
type ListPage struct {
	// Model is the content in whose sitemap the CMS has it.
	Model string
	// Path is where it is, below the root of the site or of a language.
	Path string
}

// ListPages are those of the active plugins, except where a page of the CMS has the
// address: that one is listed as a page.
func (s *Site) ListPages(ctx context.Context, links *Permalinks) (list []ListPage, err error) {
	settings, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	active := settings.List("activated_plugins")
	for _, l := range []struct {
		plugin, file string
		Model
	}{
		{"gallery", "galleries", Model{Class: `Botble\Gallery\Models\Gallery`, Prefix: "galleries"}},
		{"ecommerce", "pages", Model{Class: `Botble\Ecommerce\Models\Product`, Prefix: "products"}},
	} {
		if !slices.Contains(active, l.plugin) {
			continue
		}
		path := strings.Trim(links.date.Replace(cmp.Or(settings.prefixOf(l.Model), l.Prefix)), "/")
		page, err := s.hasPageAt(ctx, path)
		if err != nil {
			return nil, err
		}
		if !page {
			list = append(list, ListPage{Model: l.file, Path: path})
		}
	}
	return list, nil
}

// hasPageAt says whether a public page of the CMS has a slug without a prefix.
func (s *Site) hasPageAt(ctx context.Context, slug string) (bool, error) {
	columns, err := s.Columns(ctx, "slugs")
	if err != nil || len(columns) == 0 {
		return false, err
	}
	m := PageModel()
	if there, err := s.HasTable(ctx, m.Table); err != nil || !there {
		return false, err
	}
	query := fmt.Sprintf("SELECT COUNT(*) FROM %s s JOIN %s p ON p.id = s.reference_id WHERE s.reference_type = ? "+
		"AND s.%s = ? AND p.%s = ?", s.quote(s.Table("slugs")), s.quote(s.Table(m.Table)), s.quote("key"),
		s.quote(m.StatusColumn))
	if _, there := columns["prefix"]; there { // not in old versions
		query += " AND COALESCE(s.prefix, '') = ''"
	}
	var n int
	if err := s.DB.GetContext(ctx, &n, s.DB.Rebind(query), m.Class, slug, m.Published); err != nil {
		return false, fmt.Errorf("looking for a page at /%s: %w", slug, err)
	}
	return n > 0, nil
}
