package cms

import (
	"context"
	"fmt"
	"iter"
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
	// Content is what the editor wrote, HTML with the CMS's shortcodes, its first 200,000
	// characters; Summary is its short text. They are read on demand.
	Content, Summary string
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
	ID          string // of the row, where each language has its own row
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
	// Contents reads Content and Summary, from the columns content and description.
	Contents bool
	// Batch is how many rows are in memory at once; 5,000 when 0, with Contents 100.
	Batch int
	// IDs are the only rows that are read; nil: all.
	IDs []string
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

// item checks a row. What is wrong with it is for the site's editors.
func (r *row) item(from *reader) (Item, error) {
	fault := func(reason string, args ...any) (Item, error) {
		return Item{Model: from.model, ID: r.id}, &RowError{Table: from.model.Table, ID: r.id,
			Reason: fmt.Sprintf(reason, args...)}
	}
	switch {
	case r.created.bad != "":
		return fault("created_at is %q", r.created.bad)
	case r.updated.bad != "":
		return fault("updated_at is %q", r.updated.bad)
	case r.key == "" && (from.model.Name != "pages" || r.id != from.home):
		if from.model.mapped() {
			return fault("a column of its path %s is empty", from.model.Path)
		}
		return fault("it has no slug: open it in the CMS and save it")
	}
	for _, text := range []string{r.key, r.prefix} {
		if reason := unprintable(text); reason != "" {
			return fault("its slug %q %s", text, reason)
		}
	}
	i := Item{Model: from.model, ID: r.id, Key: r.key, Prefix: r.prefix, Title: r.title, Image: r.image,
		Content: r.content, Summary: r.summary,
		Created: r.created.in(from.zone), Updated: r.updated.in(from.zone)}
	if !from.prefix {
		i.Prefix = from.fixed
	}
	if r.extra != nil {
		i.NoIndex, i.Language, i.Versions = r.extra.noIndex, r.extra.language, r.extra.versions
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
