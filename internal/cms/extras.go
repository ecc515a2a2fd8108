package cms

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// extra is what other tables say of a row.
type extra struct {
	noIndex  bool
	language string
	versions []Version
}

// extras reads those tables for a batch of rows, by the range of their ids.
type extras struct {
	site  *Site
	model Model
	arg   func(id string) any
	// public is the condition for rows c that everybody may see.
	public func() (string, []any)
	// What is asked for and there.
	robots, slugTranslations, languageRows bool
	languages                              []Language
	translations                           string // table, "" when the CMS has none
}

func (s *Site) extrasOf(ctx context.Context, m Model, q ContentQuery) (extras, error) {
	e := extras{site: s, model: m}
	var err error
	there := func(table string) bool {
		var found bool
		if err == nil {
			found, err = s.HasTable(ctx, table)
		}
		return found
	}
	e.robots = q.Robots && there("meta_boxes")
	if !q.Versions {
		return e, err
	}
	if e.languages, err = s.Languages(ctx); err != nil || len(e.languages) < 2 {
		e.languages = nil
		return e, err
	}
	if there(m.Table + "_translations") {
		e.translations = m.Table + "_translations"
		e.slugTranslations = there("slugs_translations")
	}
	if there("language_meta") && err == nil {
		query := fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE reference_type = ?", s.quote(s.Table("language_meta")))
		var n int
		err = s.DB.GetContext(ctx, &n, s.DB.Rebind(query), m.Class)
		e.languageRows = n > 0
	}
	return e, err
}

func (e *extras) load(ctx context.Context, b *batch) error {
	first, last := e.arg(b.rows[0].id), e.arg(b.rows[len(b.rows)-1].id)
	steps := []struct {
		wanted bool
		load   func(context.Context, *batch, any, any) error
	}{{e.robots, e.loadRobots}, {e.translations != "", e.loadTranslations}, {e.slugTranslations, e.loadSlugs},
		{e.languageRows, e.loadRows}}
	for _, step := range steps {
		if !step.wanted {
			continue
		}
		if err := step.load(ctx, b, first, last); err != nil {
			return err
		}
	}
	return nil
}

func (r *row) more() *extra {
	if r.extra == nil {
		r.extra = &extra{}
	}
	return r.extra
}

// each runs a query whose columns are all text.
func (e *extras) each(ctx context.Context, query string, args []any, columns int, see func(values []nullText)) error {
	rows, err := e.site.DB.QueryContext(ctx, e.site.DB.Rebind(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	values, targets := make([]nullText, columns), make([]any, columns)
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		see(values)
	}
	return rows.Err()
}

// loadRobots reads the SEO box: a JSON list of one object.
func (e *extras) loadRobots(ctx context.Context, b *batch, first, last any) error {
	query := fmt.Sprintf("SELECT reference_id, meta_value FROM %s WHERE meta_key = 'seo_meta' AND reference_type = ? "+
		"AND reference_id >= ? AND reference_id <= ?",
		e.site.quote(e.site.Table("meta_boxes")))
	return e.each(ctx, query, []any{e.model.Class, first, last}, 2, func(v []nullText) {
		if r := b.row(string(v[0])); r != nil && noIndex(string(v[1])) {
			r.more().noIndex = true
		}
	})
}

func noIndex(box string) bool {
	if !strings.Contains(box, "noindex") {
		return false
	}
	type seo struct {
		Index string `json:"index"`
	}
	var list []seo
	if json.Unmarshal([]byte(box), &list) != nil {
		var one seo
		if json.Unmarshal([]byte(box), &one) != nil {
			return false
		}
		list = []seo{one}
	}
	for _, s := range list {
		if strings.EqualFold(s.Index, "noindex") {
			return true
		}
	}
	return false
}

// loadTranslations finds the languages that an item was translated into.
func (e *extras) loadTranslations(ctx context.Context, b *batch, first, last any) error {
	quote, id := e.site.quote, e.model.Table+"_id"
	query := fmt.Sprintf("SELECT %s, lang_code FROM %s WHERE %s >= ? AND %s <= ? ORDER BY %s, lang_code",
		quote(id), quote(e.site.Table(e.translations)), quote(id), quote(id), quote(id))
	return e.each(ctx, query, []any{first, last}, 2, func(v []nullText) {
		r, code := b.row(string(v[0])), string(v[1])
		if r == nil || !e.foreign(code) {
			return
		}
		x := r.more()
		x.versions = append(x.versions, Version{Language: code, Key: r.key, Prefix: r.prefix})
	})
}

// foreign says whether code is a language of the site that is not the default.
func (e *extras) foreign(code string) bool {
	for _, l := range e.languages[1:] {
		if l.Code == code {
			return true
		}
	}
	return false
}

// loadSlugs puts the translated slugs into the versions that are there. An
// empty key or a NULL prefix means the default language's.
func (e *extras) loadSlugs(ctx context.Context, b *batch, first, last any) error {
	quote := e.site.quote
	query := fmt.Sprintf(`SELECT s.reference_id, t.lang_code, t.%s, t.%s, CASE WHEN t.%s IS NULL THEN '1' ELSE '' END
FROM %s s JOIN %s t ON t.slugs_id = s.id WHERE s.reference_type = ? AND s.reference_id >= ? AND s.reference_id <= ?
		ORDER BY s.id DESC`,
		quote("key"), quote("prefix"), quote("prefix"), quote(e.site.Table("slugs")),
		quote(e.site.Table("slugs_translations")))
	return e.each(ctx, query, []any{e.model.Class, first, last}, 5, func(v []nullText) {
		r := b.row(string(v[0]))
		if r == nil || r.extra == nil {
			return
		}
		for i := range r.extra.versions {
			version := &r.extra.versions[i]
			if version.Language != string(v[1]) {
				continue
			}
			if v[2] != "" && unprintable(string(v[2])+string(v[3])) == "" {
				version.Key = string(v[2])
			}
			if v[4] == "" {
				version.Prefix = string(v[3])
			}
		}
	})
}

// loadRows reads the older way of translating: each language has a row of its
// own, and language_meta says which rows belong together. Versions are only
// those rows that are public themselves, so that all name each other.
func (e *extras) loadRows(ctx context.Context, b *batch, first, last any) error {
	quote := e.site.quote
	meta := quote(e.site.Table("language_meta"))
	box, robots := "NULL", ""
	if e.robots {
		box = "x.meta_value"
		robots = "LEFT JOIN " + quote(e.site.Table("meta_boxes")) + " x ON x.reference_id = b.reference_id AND " +
			"x.reference_type = b.reference_type AND x.meta_key = 'seo_meta'"
	}
	where, args := e.public()
	query := fmt.Sprintf(`SELECT a.reference_id, a.lang_meta_code, b.reference_id, b.lang_meta_code, s.%s, s.%s, %s
FROM %s a JOIN %s b ON b.lang_meta_origin = a.lang_meta_origin AND b.reference_type = a.reference_type
JOIN %s c ON c.id = b.reference_id JOIN %s s ON s.reference_id = b.reference_id AND s.reference_type = b.reference_type
		%s
WHERE a.reference_type = ? AND a.reference_id >= ? AND a.reference_id <= ? AND %s ORDER BY a.reference_id,
		b.lang_meta_code, s.id`,
		quote("key"), quote("prefix"), box, meta, meta, quote(e.site.Table(e.model.Table)),
		quote(e.site.Table("slugs")), robots, where)
	return e.each(ctx, query, append([]any{e.model.Class, first, last}, args...), 7, func(v []nullText) {
		r := b.row(string(v[0]))
		if r == nil {
			return
		}
		x := r.more()
		x.language = string(v[1])
		if v[2] == v[0] || x.has(string(v[3])) || v[4] == "" || unprintable(string(v[4])) != "" ||
			noIndex(string(v[6])) {
			return
		}
		x.versions = append(x.versions, Version{Language: string(v[3]), ID: string(v[2]), Key: string(v[4]),
			Prefix: string(v[5])})
	})
}

func (x *extra) has(language string) bool {
	for _, v := range x.versions {
		if v.Language == language {
			return true
		}
	}
	return false
}
