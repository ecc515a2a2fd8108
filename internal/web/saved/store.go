package saved

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The bounds of what one owner may save.
const (
	Most     = 50 // filters of all lists
	MaxName  = 60 // characters
	maxQuery = 1000
)

// ErrFull says that an owner has as many filters as may be.
var ErrFull = errors.New("there are as many saved filters as may be")

// Filter is what somebody saved for a list.
type Filter struct {
	List  string `db:"list"` // jobs, failed, runs
	Name  string `db:"name"`
	Query string `db:"query"` // as the page's address has it
}

// Store keeps filters in our own table.
type Store struct {
	db  *sqlx.DB
	now func() time.Time
}

// NewStore returns a store over a database in which our migrations ran.
func NewStore(db *sqlx.DB, now func() time.Time) *Store { return &Store{db, now} }

// Of are an owner's filters of a list, by name.
func (s *Store) Of(ctx context.Context, owner, list string) ([]Filter, error) {
	filters := []Filter{}
	if err := s.db.SelectContext(ctx, &filters, s.db.Rebind("SELECT list, name, query FROM cmsjobs_saved_filters "+
		"WHERE owner = ? AND list = ? ORDER BY name"), owner, list); err != nil {
		return nil, fmt.Errorf("listing the saved filters of %s: %w", list, err)
	}
	return filters, nil
}

// Save keeps a filter; one of the same list and name is replaced. It wraps
// jobs.ErrInvalid for a name or filter that cannot be kept, and [ErrFull].
func (s *Store) Save(ctx context.Context, owner string, f Filter) error {
	if n := utf8.RuneCountInString(f.Name); n == 0 || n > MaxName || !utf8.ValidString(f.Name) ||
		strings.ContainsFunc(f.Name, unicode.IsControl) || strings.TrimSpace(f.Name) != f.Name ||
		len(f.Query) > maxQuery || len(owner) > 191 || owner == "" {
		return fmt.Errorf("saving a filter of %s: its name or length: %w", f.List, jobs.ErrInvalid)
	}
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("saving a filter: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, tx.Rebind("DELETE FROM cmsjobs_saved_filters WHERE owner = ? AND list = ? AND "+
		"name = ?"), owner, f.List, f.Name); err != nil {
		return fmt.Errorf("replacing a saved filter: %w", err)
	}
	var n int
	if err := tx.GetContext(ctx, &n, tx.Rebind("SELECT COUNT(*) FROM cmsjobs_saved_filters WHERE owner = ?"),
		owner); err != nil {
		return fmt.Errorf("counting saved filters: %w", err)
	}
	if n >= Most {
		return fmt.Errorf("saving a filter: %d are kept: %w", n, ErrFull)
	}
	if _, err := tx.ExecContext(ctx, tx.Rebind("INSERT INTO cmsjobs_saved_filters (owner, list, name, query, "+
		"created_at) VALUES (?, ?, ?, ?, ?)"), owner, f.List, f.Name, f.Query, s.now().UnixMilli()); err != nil {
		return fmt.Errorf("saving a filter: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("saving a filter: %w", err)
	}
	return nil
}

// Delete takes a filter away and returns what it was. It wraps jobs.ErrNotFound.
func (s *Store) Delete(ctx context.Context, owner, list, name string) (Filter, error) {
	filters, err := s.Of(ctx, owner, list)
	if err != nil {
		return Filter{}, err
	}
	for _, f := range filters {
		if f.Name != name {
			continue
		}
		if _, err := s.db.ExecContext(ctx, s.db.Rebind("DELETE FROM cmsjobs_saved_filters WHERE owner = ? AND "+
			"list = ? AND name = ?"), owner, list, name); err != nil {
			return f, fmt.Errorf("deleting a saved filter: %w", err)
		}
		return f, nil
	}
	return Filter{}, fmt.Errorf("no filter of %s is saved as %.80q: %w", list, name, jobs.ErrNotFound)
}
