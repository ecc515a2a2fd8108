package cms

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

const (
	defaultBatch = 5000
	// contentBatch is smaller, as a row may have maxContent characters more.
	contentBatch = 100
	maxContent   = 200_000
)

// reader reads a model's rows, a batch at a time.
type reader struct {
	site    *Site
	model   *Model
	query   ContentQuery
	zone    *time.Location
	numeric bool // ids are numbers
	prefix  bool // slugs have their own prefix
	columns map[string]string
	fixed   string // the prefix where slugs have none
	home    string // the page that is shown at the root, and needs no slug
	last    string
	extras  extras
	batches [2]*batch
}

type fetched struct {
	rows []row
	err  error
}

// reader is nil when the CMS has no such table.
func (s *Site) reader(ctx context.Context, m Model, q ContentQuery) (*reader, error) {
	m = m.WithDefaults()
	columns, err := s.Columns(ctx, m.Table)
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	settings, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	zone, err := settings.zone(s.FallbackZone)
	if err != nil {
		return nil, err
	}
	slugs, err := s.Columns(ctx, "slugs")
	if err != nil {
		return nil, err
	}
	if len(slugs) == 0 && !m.mapped() {
		return nil, errors.New("the CMS has no table slugs, so nothing has an address; check the database name and " +
			"DB_PREFIX")
	}
	if q.Batch <= 0 {
		q.Batch = defaultBatch
		if q.Contents {
			q.Batch = contentBatch
		}
	}
	_, prefix := slugs["prefix"]
	r := &reader{site: s, model: &m, query: q, zone: zone, columns: columns, prefix: prefix,
		fixed: settings.prefixOf(m), home: settings.homepage(),
		numeric: strings.Contains(columns["id"], "int")}
	r.batches = [2]*batch{{numeric: r.numeric}, {numeric: r.numeric}}
	if m.mapped() {
		r.prefix = false
		return r, r.columnsThere()
	}
	r.extras, err = s.extrasOf(ctx, m, q)
	r.extras.arg, r.extras.public = r.idArg, r.public
	return r, err
}

// fetch reads batches until the table ends, or an error, or ctx.
func (r *reader) fetch(ctx context.Context) <-chan fetched {
	batches := make(chan fetched)
	go func() {
		defer close(batches)
		for done := false; !done; {
			rows, err := r.next(ctx)
			done = err != nil || len(rows) < r.query.Batch
			select {
			case batches <- fetched{rows, err}:
			case <-ctx.Done():
				done = true
			}
		}
	}()
	return batches
}

// next reads the batch after the last one. Two batches are enough: n+2 is
// begun when n+1 was taken, and so n is done with.
func (r *reader) next(ctx context.Context) ([]row, error) {
	r.batches[0], r.batches[1] = r.batches[1], r.batches[0]
	b := r.batches[0]
	if err := r.read(ctx, b); err != nil || len(b.rows) == 0 {
		return nil, err
	}
	r.last = b.rows[len(b.rows)-1].id
	if r.model.mapped() {
		return b.rows, nil
	}
	if err := r.slugs(ctx, b); err != nil {
		return nil, err
	}
	return b.rows, r.extras.load(ctx, b)
}

// read fills b with the model's own rows. Only the columns that are wanted
// are asked for: each costs as much as the row itself.
func (r *reader) read(ctx context.Context, b *batch) error {
	b.begin()
	var id, title, image, content, summary sql.RawBytes
	at := row{}
	columns, targets := []string{"c.id"}, []any{&id}
	for _, c := range []struct {
		wanted bool
		name   string
		target any
	}{{true, "created_at", &at.created}, {true, "updated_at", &at.updated},
		{r.query.Titles, r.model.TitleColumn, &title}, {r.query.Images, r.model.ImageColumn, &image},
		{r.query.Contents, "content", &content}, {r.query.Contents, "description", &summary}} {
		if _, there := r.columns[c.name]; there && c.wanted {
			columns, targets = append(columns, r.column(c.name)), append(targets, c.target)
		}
	}
	mapped := make([]sql.RawBytes, len(r.model.PathColumns()))
	for i, name := range r.model.PathColumns() {
		columns, targets = append(columns, "c."+r.site.quote(name)), append(targets, &mapped[i])
	}
	at.created.null, at.updated.null = true, true
	text, args := r.sql(columns)
	rows, err := r.site.DB.QueryContext(ctx, r.site.DB.Rebind(text), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if b.add(at, id, title, image, content, summary); r.model.mapped() {
			b.rows[len(b.rows)-1].key = mappedKey(r.model.Path, mapped)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	b.settle()
	return nil
}

// column is how one is asked for: of a long text the beginning.
func (r *reader) column(name string) string {
	quoted := "c." + r.site.quote(name)
	if name == "content" {
		return fmt.Sprintf("SUBSTR(%s, 1, %d)", quoted, maxContent)
	}
	return quoted
}

func (r *reader) sql(columns []string) (string, []any) {
	where, args := r.public()
	if r.last != "" {
		where += " AND c.id > ?"
		args = append(args, r.idArg(r.last))
	}
	if r.query.IDs != nil {
		more, values := r.those()
		where, args = where+more, append(args, values...)
	}
	return fmt.Sprintf("SELECT %s FROM %s c WHERE %s ORDER BY c.id LIMIT %d",
		strings.Join(columns, ", "), r.site.quote(r.site.Table(r.model.Table)), where, r.query.Batch), args
}

// those is the condition for the rows that were asked for: ids that cannot be in the
// table are left out.
func (r *reader) those() (string, []any) {
	var args []any
	for _, id := range r.query.IDs {
		arg := r.idArg(id)
		if _, text := arg.(string); text && r.numeric {
			continue
		}
		args = append(args, arg)
	}
	if len(args) == 0 {
		return " AND 1 = 0", nil
	}
	return " AND c.id IN (" + database.Marks(len(args)) + ")", args
}

// public is the condition for rows that everybody may see.
func (r *reader) public() (string, []any) {
	where, args := "1 = 1", []any(nil)
	if _, there := r.columns[r.model.StatusColumn]; there {
		// COALESCE keeps MySQL from the index on status, by which a batch costs
		// ten times more than by the primary key.
		where += " AND COALESCE(c." + r.site.quote(r.model.StatusColumn) + ", '') = ?"
		args = append(args, r.model.Published)
	}
	if r.model.mapped() {
		more, values := r.mappedPublic()
		where, args = where+more, append(args, values...)
	}
	if _, there := r.columns["created_at"]; there && r.model.Scheduled && !r.query.Now.IsZero() {
		where += " AND (c.created_at IS NULL OR c.created_at <= ?)"
		args = append(args, WallClock(r.query.Now, r.zone))
	}
	return where, args
}

// idArg binds an id as its column's type, so that the index is used and
// numbers compare as numbers.
func (r *reader) idArg(id string) any {
	if r.numeric {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			return n
		}
	}
	return id
}
