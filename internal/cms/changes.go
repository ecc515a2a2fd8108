package cms

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Entry is a row of content as publishing sees it, public or not.
type Entry struct {
	ID, Status, Title string
	// Created, Updated and Date (of the date column that was asked for) are zero
	// where the row has none or an absurd one.
	Created, Updated, Date time.Time
}

// Entry reads one row; found is false when it is gone. dateColumn may be "".
func (s *Site) Entry(ctx context.Context, m Model, dateColumn, id string) (e Entry, found bool, err error) {
	q, err := s.entries(ctx, m, dateColumn)
	if err != nil || q == nil {
		return e, false, err
	}
	list, err := q.read(ctx, "c.id = ?", "c.id", 1, q.id(id))
	if err != nil || len(list) == 0 {
		return e, false, err
	}
	return list[0], true, nil
}

// Ahead lists rows whose publication lies ahead, at most limit: of a Scheduled
// model the public ones that are dated after now; with a dateColumn also
// drafts that have a date, be it over or not.
func (s *Site) Ahead(ctx context.Context, m Model, dateColumn string, now time.Time, limit int) ([]Entry, error) {
	q, err := s.entries(ctx, m, dateColumn)
	if err != nil || q == nil || !q.has(m.StatusColumn) {
		return nil, err
	}
	status := "c." + s.quote(m.StatusColumn)
	var list []Entry
	if m.Scheduled && q.has("created_at") {
		if list, err = q.read(ctx, "c.created_at > ? AND "+status+" = ?", "c.created_at, c.id", limit,
			WallClock(now, q.zone), m.Published); err != nil {
			return nil, err
		}
	}
	if dateColumn != "" {
		drafts, err := q.read(ctx, "c."+s.quote(dateColumn)+" IS NOT NULL AND "+status+" IN ('draft', 'pending')",
			"c."+s.quote(dateColumn)+", c.id", limit)
		if err != nil {
			return nil, err
		}
		list = append(list, drafts...)
	}
	return list, nil
}

// MakePublic publishes a draft. done is false when the row is gone, or is a
// draft no more: then nothing was written.
func (s *Site) MakePublic(ctx context.Context, m Model, id string, now time.Time) (done bool, err error) {
	q, err := s.entries(ctx, m, "")
	if err != nil || q == nil {
		return false, err
	}
	status := s.quote(m.StatusColumn)
	set, args := status+" = ?", []any{m.Published}
	if q.has("updated_at") {
		set, args = set+", updated_at = ?", append(args, WallClock(now, q.zone))
	}
	query := fmt.Sprintf("UPDATE %s SET %s WHERE id = ? AND %s IN ('draft', 'pending')", s.quote(s.Table(m.Table)),
		set, status)
	r, err := s.DB.ExecContext(ctx, s.DB.Rebind(query), append(args, q.id(id))...)
	if err != nil {
		return false, fmt.Errorf("publishing %s %s: %w", m.Name, id, err)
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// Address is where one row is on the site; "" when it has no slug.
func (s *Site) Address(ctx context.Context, m Model, id string, now time.Time) (string, error) {
	links, err := s.Permalinks(ctx, now)
	if err != nil {
		return "", err
	}
	columns, err := s.Columns(ctx, "slugs")
	if err != nil || len(columns) == 0 {
		return "", err
	}
	settings, err := s.Settings(ctx)
	if err != nil {
		return "", err
	}
	prefix := "NULL"
	if _, there := columns["prefix"]; there {
		prefix = s.quote("prefix")
	}
	q := entries{site: s, columns: map[string]string{"id": columns["reference_id"]}}
	var key string
	var before sql.NullString
	query := fmt.Sprintf("SELECT %s, %s FROM %s WHERE reference_type = ? AND reference_id = ? ORDER BY id LIMIT 1",
		s.quote("key"), prefix, s.quote(s.Table("slugs")))
	err = s.DB.QueryRowContext(ctx, s.DB.Rebind(query), m.Class, q.id(id)).Scan(&key, &before)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading the slug of %s %s: %w", m.Name, id, err)
	case prefix == "NULL":
		before.String = settings.prefixOf(m)
	}
	return links.URL(&Item{Model: &m, ID: id, Key: key, Prefix: before.String}), nil
}

// lists say which models list posts on their pages, and which table knows of what.
var lists = []struct{ model, table, column string }{
	{"categories", "post_categories", "category_id"}, {"tags", "post_tags", "tag_id"},
}

const (
	// rowsAtOnce is how many rows one statement asks about.
	rowsAtOnce = 500
	// categoryDepth bounds how many categories stand above another.
	categoryDepth = 10
)

// ListsOf are the ids of what lists posts, by the name of the model: at most so many of
// each. A category lists the posts of those below it too. Of the pages it is the one that
// the theme shows all posts on. A CMS without the tables has none.
func (s *Site) ListsOf(ctx context.Context, posts []string, most int) (map[string][]string, error) {
	found := map[string][]string{}
	for _, l := range lists {
		ids, err := s.related(ctx, l.table, l.column, "post_id", posts, most)
		if err != nil {
			return nil, err
		}
		found[l.model] = ids
	}
	all := found["categories"]
	for below, depth := all, 0; len(below) > 0 && len(all) < most && depth < categoryDepth; depth++ {
		above, err := s.related(ctx, "categories", "parent_id", "id", below, most)
		if err != nil {
			return nil, err
		}
		below = slices.DeleteFunc(above, func(id string) bool { return id == "0" || slices.Contains(all, id) })
		all = append(all, below...)
	}
	found["categories"] = all[:min(len(all), most)]
	settings, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if page := settings.String(fmt.Sprintf("theme-%s-blog_page_id", settings["theme"]), ""); page != "" {
		found["pages"] = []string{page}
	}
	return found, nil
}

// related are the values of a column in the rows that name some of the keys; none where
// the CMS has no such table or column.
func (s *Site) related(ctx context.Context, table, column, by string, keys []string, most int) ([]string, error) {
	columns, err := s.Columns(ctx, table)
	if err != nil || columns[column] == "" || columns[by] == "" {
		return nil, err
	}
	q := entries{site: s, columns: map[string]string{"id": columns[by]}}
	var all []string
	for chunk := range slices.Chunk(keys, rowsAtOnce) {
		var ids []string
		query := fmt.Sprintf("SELECT DISTINCT %s FROM %s WHERE %s IN (%s) AND %s IS NOT NULL LIMIT %d", s.quote(column),
			s.quote(s.Table(table)), s.quote(by), database.Marks(len(chunk)), s.quote(column), most)
		if err := s.DB.SelectContext(ctx, &ids, s.DB.Rebind(query), q.ids(chunk)...); err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", column, table, err)
		}
		for _, id := range ids {
			if len(all) < most && !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	return all, nil
}

// AuthorsOf are the addresses of the posts' authors, at most so many: of those that have
// one, as members of the CMS do, and its users do not.
func (s *Site) AuthorsOf(ctx context.Context, posts []string, links *Permalinks, most int) ([]string, error) {
	columns, err := s.Columns(ctx, "posts")
	if err != nil {
		return nil, err
	}
	slugs, err := s.Columns(ctx, "slugs")
	if err != nil || columns["author_type"] == "" || columns["author_id"] == "" || slugs["reference_id"] == "" ||
		slugs["prefix"] == "" {
		return nil, err
	}
	q := entries{site: s, columns: map[string]string{"id": columns["id"]}}
	authors := map[string][]string{} // by class
	for chunk := range slices.Chunk(posts, rowsAtOnce) {
		var found []struct{ Class, ID string }
		query := fmt.Sprintf("SELECT DISTINCT author_type AS class, author_id AS id FROM %s WHERE id IN (%s) AND "+
			"author_id IS NOT NULL AND author_type IS NOT NULL LIMIT %d", s.quote(s.Table("posts")),
			database.Marks(len(chunk)), most)
		if err := s.DB.SelectContext(ctx, &found, s.DB.Rebind(query), q.ids(chunk)...); err != nil {
			return nil, fmt.Errorf("reading the authors of posts: %w", err)
		}
		for _, a := range found {
			authors[a.Class] = append(authors[a.Class], a.ID)
		}
	}
	var addresses []string
	for _, class := range slices.Sorted(maps.Keys(authors)) {
		found, err := s.addresses(ctx, class, authors[class], slugs["reference_id"], links, most)
		if err != nil {
			return nil, fmt.Errorf("reading the addresses of authors: %w", err)
		}
		addresses = append(addresses, found...)
	}
	return addresses[:min(len(addresses), most)], nil
}

// addresses are those of the rows of a class, as the table slugs has them.
func (s *Site) addresses(ctx context.Context, class string, ids []string, idType string, links *Permalinks, most int) (
	list []string, err error) {
	q := entries{site: s, columns: map[string]string{"id": idType}}
	for chunk := range slices.Chunk(ids, rowsAtOnce) {
		var found []struct {
			Slug   string
			Prefix sql.NullString
		}
		query := fmt.Sprintf("SELECT %s AS slug, prefix FROM %s WHERE reference_type = ? AND reference_id IN (%s) "+
			"ORDER BY id LIMIT %d", s.quote("key"), s.quote(s.Table("slugs")), database.Marks(len(chunk)), most)
		args := append([]any{class}, q.ids(chunk)...)
		if err := s.DB.SelectContext(ctx, &found, s.DB.Rebind(query), args...); err != nil {
			return nil, err
		}
		for _, a := range found {
			list = append(list, links.URL(&Item{Model: &Model{Class: class}, Key: a.Slug, Prefix: a.Prefix.String}))
		}
	}
	return list, nil
}

// entries reads a model's table.
type entries struct {
	site       *Site
	model      Model
	dateColumn string
	columns    map[string]string
	zone       *time.Location
}

// entries is nil when the CMS does not have the table.
func (s *Site) entries(ctx context.Context, m Model, dateColumn string) (*entries, error) {
	q := &entries{site: s, model: m.WithDefaults(), dateColumn: dateColumn}
	var err error
	if q.columns, err = s.Columns(ctx, q.model.Table); err != nil || len(q.columns) == 0 {
		return nil, err
	}
	if dateColumn != "" && !q.has(dateColumn) {
		return nil, fmt.Errorf("the CMS's table %s has no column %q for publication dates", q.model.Table, dateColumn)
	}
	q.zone, err = s.Zone(ctx)
	return q, err
}

func (q *entries) has(column string) bool { return q.columns[strings.ToLower(column)] != "" }

// id binds an id as its column's type.
func (q *entries) id(id string) any {
	if strings.Contains(strings.ToLower(q.columns["id"]), "int") {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			return n
		}
	}
	return id
}

// ids binds ids as their column's type.
func (q *entries) ids(list []string) []any {
	args := make([]any, len(list))
	for i, id := range list {
		args[i] = q.id(id)
	}
	return args
}

func (q *entries) read(ctx context.Context, where, order string, limit int, args ...any) ([]Entry, error) {
	s := q.site
	column := func(name string) string {
		if name == "" || !q.has(name) {
			return "NULL"
		}
		return "c." + s.quote(name)
	}
	query := fmt.Sprintf("SELECT c.id, %s, %s, %s, %s, %s FROM %s c WHERE %s ORDER BY %s LIMIT %d",
		column(q.model.StatusColumn), column(q.model.TitleColumn),
		column("created_at"), column("updated_at"), column(q.dateColumn), s.quote(s.Table(q.model.Table)), where,
		order, limit)
	rows, err := s.DB.QueryContext(ctx, s.DB.Rebind(query), args...)
	if err != nil {
		return nil, fmt.Errorf("reading the CMS's %s: %w", q.model.Name, err)
	}
	defer rows.Close()
	var list []Entry
	for rows.Next() {
		var e Entry
		var status, title sql.NullString
		var created, updated, date wallTime
		if err := rows.Scan(&e.ID, &status, &title, &created, &updated, &date); err != nil {
			return nil, fmt.Errorf("reading the CMS's %s: %w", q.model.Name, err)
		}
		e.Status, e.Title = status.String, title.String
		e.Created, e.Updated, e.Date = created.in(q.zone), updated.in(q.zone), date.in(q.zone)
		list = append(list, e)
	}
	return list, rows.Err()
}
