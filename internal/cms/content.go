package cms

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Item is one public piece of content.
type Item struct {
	Model *Model
	ID    string
	// Key and Prefix are the slug's; Prefix may hold %%year%% and the like.
	Key, Prefix string
	// Created and Updated are zero where the CMS has none.
	Created, Updated time.Time
	// Title and Image (a path below the upload root) are read on demand.
	Title, Image string
	// NoIndex says that the editor keeps it out of search engines.
	NoIndex bool
	// Language is the code ("en_US") that the row itself is written in; ""
	// where the CMS does not say, which is its default language.
	Language string
	// Versions are the same content in other languages, on demand.
	Versions []Version
}

// Version is where one language's form of an item is.
type Version struct {
	Language    string // code: "vi"
	ID          string // of the row, where each language has a row of its own
	Key, Prefix string
}

// Modified is when the item last changed, zero if nobody knows.
func (i *Item) Modified() time.Time {
	if i.Updated.IsZero() {
		return i.Created
	}
	return i.Updated
}

// RowError tells of one row that cannot be used. Reading goes on after it.
type RowError struct {
	Table, ID string
	Reason    string
}

func (e *RowError) Error() string { return fmt.Sprintf("%s %s: %s", e.Table, e.ID, e.Reason) }

// ContentQuery says what of a model to read.
type ContentQuery struct {
	// Now decides which scheduled content is public.
	Now time.Time
	// Titles, Images, Robots and Versions fill the fields of Item that cost more.
	Titles, Images, Robots, Versions bool
	// Batch is how many rows are in memory at once; 5,000 when 0.
	Batch int
}

// Content reads a model's public rows in order of their ids, a batch at a
// time, each by its own short queries; the next batch is fetched while one is
// used. A row that cannot be used comes as a *RowError with an Item that has
// its ID only; any other error ends the sequence. A model whose table the CMS
// does not have is empty.
func (s *Site) Content(ctx context.Context, m Model, q ContentQuery) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r, err := s.reader(ctx, m, q)
		if err != nil {
			yield(Item{}, fmt.Errorf("reading the CMS's %s: %w", m.Name, err))
		}
		if err != nil || r == nil {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		batches := r.fetch(ctx)
		defer func() { // no query outlives the loop
			cancel()
			for range batches {
			}
		}()
		for b := range batches {
			if b.err != nil {
				yield(Item{}, fmt.Errorf("reading the CMS's %s: %w", m.Name, b.err))
				return
			}
			for i := range b.rows {
				if item, fault := b.rows[i].item(r); !yield(item, fault) {
					return
				}
			}
		}
	}
}

const defaultBatch = 5000

type reader struct {
	site    *Site
	model   *Model
	query   ContentQuery
	zone    *time.Location
	numeric bool // ids are numbers
	prefix  bool // slugs have a prefix of their own
	columns map[string]string
	fixed   string // the prefix where slugs have none
	home    string // the page that is shown at the root, and needs no slug
	last    string
	extras  extras
	buffers [2][]row
	at      map[string]*row // of the batch that is being read
}

type row struct {
	id               string
	slugID           string // of the slug whose key this is
	key, prefix      string
	title, image     string
	created, updated wallTime
	extra            *extra
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
	if len(slugs) == 0 {
		return nil, errors.New("the CMS has no table slugs, so nothing has an address; check the database name and DB_PREFIX")
	}
	if q.Batch <= 0 {
		q.Batch = defaultBatch
	}
	_, prefix := slugs["prefix"]
	r := &reader{site: s, model: &m, query: q, zone: zone, columns: columns, prefix: prefix, fixed: settings.prefixOf(m), home: settings.homepage(),
		numeric: strings.Contains(columns["id"], "int")}
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

// next reads the batch after the last one.
func (r *reader) next(ctx context.Context) ([]row, error) {
	text, args := r.sql()
	rows, err := r.site.DB.QueryContext(ctx, r.site.DB.Rebind(text), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	// Two buffers are enough: batch n+2 is begun when n+1 was taken, and so n is
	// done with.
	r.buffers[0], r.buffers[1] = r.buffers[1], r.buffers[0]
	batch := r.buffers[0][:0]
	defer func() { r.buffers[0] = batch }()
	var title, image nullText
	for rows.Next() {
		batch = append(batch, row{})
		at := &batch[len(batch)-1]
		if err := rows.Scan(&at.id, &at.created, &at.updated, &title, &image); err != nil {
			return nil, err
		}
		at.title, at.image = string(title), string(image)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(batch) == 0 {
		return nil, err
	}
	r.last = batch[len(batch)-1].id
	return batch, r.complete(ctx, batch)
}

func (r *reader) sql() (string, []any) {
	m, quote := r.model, r.site.quote
	column := func(wanted bool, name string) string {
		if _, there := r.columns[name]; !wanted || !there {
			return "NULL"
		}
		return "c." + quote(name)
	}
	where, args := r.public()
	if r.last != "" {
		where += " AND c.id > ?"
		args = append(args, r.idArg(r.last))
	}
	return fmt.Sprintf("SELECT c.id, %s, %s, %s, %s FROM %s c WHERE %s ORDER BY c.id LIMIT %d",
		column(true, "created_at"), column(true, "updated_at"), column(r.query.Titles, m.TitleColumn), column(r.query.Images, m.ImageColumn),
		quote(r.site.Table(m.Table)), where, r.query.Batch), args
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

// item checks a row. What is wrong with it is for the site's editors.
func (at *row) item(r *reader) (Item, error) {
	fault := func(reason string, args ...any) (Item, error) {
		return Item{Model: r.model, ID: at.id}, &RowError{Table: r.model.Table, ID: at.id, Reason: fmt.Sprintf(reason, args...)}
	}
	switch {
	case at.created.bad != "":
		return fault("created_at is %q", at.created.bad)
	case at.updated.bad != "":
		return fault("updated_at is %q", at.updated.bad)
	case at.key == "" && (r.model.Name != "pages" || at.id != r.home):
		return fault("it has no slug: open it in the CMS and save it")
	}
	for _, text := range []string{at.key, at.prefix} {
		if reason := unprintable(text); reason != "" {
			return fault("its slug %q %s", text, reason)
		}
	}
	i := Item{Model: r.model, ID: at.id, Key: at.key, Prefix: at.prefix, Title: at.title, Image: at.image,
		Created: at.created.in(r.zone), Updated: at.updated.in(r.zone)}
	if !r.prefix {
		i.Prefix = r.fixed
	}
	if at.extra != nil {
		i.NoIndex, i.Language, i.Versions = at.extra.noIndex, at.extra.language, at.extra.versions
	}
	return i, nil
}

// unprintable says why text can be no part of an address.
func unprintable(text string) string {
	plain := true
	for i := range len(text) {
		plain = plain && ' ' <= text[i] && text[i] <= '~'
	}
	if plain {
		return "" // nearly all of them
	}
	if !utf8.ValidString(text) {
		return "is not UTF-8"
	}
	if strings.ContainsFunc(text, unicode.IsControl) || strings.ContainsRune(text, utf8.RuneError) {
		return "has characters that no address can have"
	}
	return ""
}

// nullText scans NULL as "".
type nullText string

func (t *nullText) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*t = ""
	case []byte:
		*t = nullText(v)
	case string:
		*t = nullText(v)
	default:
		*t = nullText(fmt.Sprint(v))
	}
	return nil
}
