package cms

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Digest is a cheap summary of rows: two equal digests mean, as good as
// certainly, the same rows.
type Digest struct {
	Rows int64
	Sum  string // order-independent checksum of the columns
}

// ContentDigest summarises all that decides which addresses a model has and
// when they changed: its public rows, their slugs, translations and SEO boxes.
// The database does the sum (about 1 s for a million rows), so nothing is read
// twice in the usual case, which is that nothing changed. The first digest is
// of the public rows themselves.
func (s *Site) ContentDigest(ctx context.Context, m Model, q ContentQuery) ([]Digest, error) {
	r, err := s.reader(ctx, m, q)
	if err != nil || r == nil {
		return nil, err
	}
	m = *r.model
	quote := s.quote
	columns := []string{"c.id"}
	for _, name := range []string{"created_at", "updated_at"} {
		if _, there := r.columns[name]; there {
			columns = append(columns, "c."+quote(name))
		}
	}
	columns = append(columns, r.pathColumns()...)
	where, args := r.public()
	parts := []digestPart{{quote(s.Table(m.Table)) + " c", columns, where, args}}
	if m.mapped() {
		return s.digests(ctx, m, parts)
	}
	slug := []string{"c.id", "c.reference_id", "c." + quote("key")}
	if r.prefix {
		slug = append(slug, "c."+quote("prefix"))
	}
	ofClass := []any{r.model.Class}
	parts = append(parts, digestPart{quote(s.Table("slugs")) + " c", slug, "c.reference_type = ?", ofClass})
	if r.extras.robots {
		parts = append(parts, digestPart{quote(s.Table("meta_boxes")) + " c",
			[]string{"c.reference_id", "c.meta_value"}, "c.meta_key = 'seo_meta' AND c.reference_type = ?", ofClass})
	}
	if t := r.extras.translations; t != "" {
		parts = append(parts,
			digestPart{quote(s.Table(t)) + " c", []string{"c.lang_code", "c." + quote(m.Table+"_id")}, "1 = 1", nil})
	}
	if r.extras.slugTranslations {
		parts = append(parts, digestPart{quote(s.Table("slugs_translations")) + " c",
			[]string{"c.lang_code", "c.slugs_id", "c." + quote("key"), "c." + quote("prefix")}, "1 = 1", nil})
	}
	if r.extras.languageRows {
		parts = append(parts, digestPart{quote(s.Table("language_meta")) + " c",
			[]string{"c.reference_id", "c.lang_meta_code", "c.lang_meta_origin"}, "c.reference_type = ?", ofClass})
	}
	return s.digests(ctx, m, parts)
}

// pathColumns are the columns of a mapped model's path, quoted.
func (r *reader) pathColumns() (columns []string) {
	for _, name := range r.model.PathColumns() {
		columns = append(columns, "c."+r.site.quote(name))
	}
	return columns
}

func (s *Site) digests(ctx context.Context, m Model, parts []digestPart) (_ []Digest, err error) {
	digests := make([]Digest, len(parts))
	for i, p := range parts {
		if digests[i], err = s.digest(ctx, p); err != nil {
			return nil, fmt.Errorf("summing up the CMS's %s: %w", m.Name, err)
		}
	}
	return digests, nil
}

type digestPart struct {
	from    string
	columns []string
	where   string
	args    []any
}

// digest sums a checksum of each row; the sum does not depend on their order.
func (s *Site) digest(ctx context.Context, p digestPart) (Digest, error) {
	checksum, ok := database.Of(s.DB).Checksum(p.columns)
	if !ok {
		return s.digestHere(ctx, p)
	}
	var d Digest
	query := fmt.Sprintf("SELECT COUNT(*), %s FROM %s WHERE %s", checksum, p.from, p.where)
	err := s.DB.QueryRowContext(ctx, s.DB.Rebind(query), p.args...).Scan(&d.Rows, &d.Sum)
	return d, err
}

// digestHere sums in this process: SQLite has no checksums, but is in it anyway.
func (s *Site) digestHere(ctx context.Context, p digestPart) (Digest, error) {
	rows, err := s.DB.QueryContext(ctx,
		s.DB.Rebind(fmt.Sprintf("SELECT %s FROM %s WHERE %s", strings.Join(p.columns, ", "), p.from, p.where)),
		p.args...)
	if err != nil {
		return Digest{}, err
	}
	defer rows.Close()
	values, targets := make([]sql.RawBytes, len(p.columns)), make([]any, len(p.columns))
	for i := range values {
		targets[i] = &values[i]
	}
	var d Digest
	var sum uint64
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return Digest{}, err
		}
		h := fnv.New64a()
		for _, v := range values {
			if v == nil {
				v = sql.RawBytes("~")
			}
			h.Write(v)
			h.Write([]byte{'|'})
		}
		sum += h.Sum64()
		d.Rows++
	}
	d.Sum = fmt.Sprintf("%x", sum)
	return d, rows.Err()
}
