package cms

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
	// Scheduled content has its publication date in created_at: a row that is
	// dated ahead is not public yet.
	Scheduled bool
}

// The CMS's own models.
func PageModel() Model { return Model{Name: "pages", Class: `Botble\Page\Models\Page`}.withDefaults() }

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
		list[i] = list[i].withDefaults()
	}
	return list
}

func (m Model) withDefaults() Model {
	for _, f := range []struct {
		field    *string
		fallback string
	}{
		{&m.Table, m.Name}, {&m.StatusColumn, "status"}, {&m.Published, "published"}, {&m.ImageColumn, "image"}, {&m.TitleColumn, "name"},
	} {
		if *f.field == "" {
			*f.field = f.fallback
		}
	}
	return m
}
