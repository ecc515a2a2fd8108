package cms

import (
	"context"
	"fmt"
	"slices"
)

// Language is one that the site can be read in.
type Language struct {
	Code    string `db:"lang_code"`   // as tables name it: "en_US", "vi"
	Locale  string `db:"lang_locale"` // as addresses name it: "en", "vi"
	Default bool   `db:"lang_is_default"`
}

// Languages lists the site's languages, the default one first. A site without
// the language plugin, or with it switched off, has none.
func (s *Site) Languages(ctx context.Context) ([]Language, error) {
	columns, err := s.Columns(ctx, "languages")
	if err != nil || columns["lang_code"] == "" { // other applications have a table of that name, too
		return nil, err
	}
	settings, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if plugins := settings.List("activated_plugins"); len(plugins) > 0 && !slices.Contains(plugins, "language") {
		return nil, nil
	}
	var list []Language
	query := fmt.Sprintf("SELECT lang_code, lang_locale, lang_is_default <> 0 AS lang_is_default FROM %s ORDER BY "+
		"lang_is_default DESC, lang_order, lang_id",
		s.quote(s.Table("languages")))
	if err := s.DB.SelectContext(ctx, &list, query); err != nil {
		return nil, fmt.Errorf("reading the CMS's languages: %w", err)
	}
	return list, nil
}
