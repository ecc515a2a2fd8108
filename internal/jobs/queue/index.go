package queue

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// OfferIndex is the statement that adds the index which serves claims, for an
// administrator to read; "" where there is one already.
func (s *Store) OfferIndex() string {
	t := s.Layout.Table()
	if t.Ordered != "" {
		return ""
	}
	columns := "queue, " + t.Due.Name
	if s.Layout.Name() == tables.Extended {
		columns = "queue, status, priority, " + t.Due.Name + ", id"
	}
	if s.Dialect.Name == "postgres" && s.Layout.Name() == tables.Stock {
		columns += ", id" // the other two end every index with the row's number
	}
	return fmt.Sprintf("CREATE INDEX %s ON %s (%s)", s.Dialect.Ident(s.indexName()), t.Name, columns)
}

func (s *Store) indexName() string { return "cmsjobs_" + s.Layout.Table().Plain + "_due" }

// AddIndex adds the offered index to the CMS's table. It is the one change that
// we ever make there, and only when told to.
func (s *Store) AddIndex(ctx context.Context) error {
	statement := s.OfferIndex()
	if statement == "" {
		return nil
	}
	if _, err := s.Exec(ctx, s.DB, statement); err != nil {
		return database.Explain("adding the index "+s.indexName(), err)
	}
	return s.reread(ctx)
}

// DropIndex removes the index that AddIndex added, where it is there.
func (s *Store) DropIndex(ctx context.Context) error {
	indexes, err := s.IndexesOf(ctx, s.DB, s.Layout.Table().Plain)
	if err != nil {
		return err
	}
	if _, claimable := indexes[s.indexName()]; !claimable {
		return nil
	}
	statement := "DROP INDEX " + s.Dialect.Ident(s.indexName())
	if s.Dialect.Name == "mysql" {
		statement += " ON " + s.Layout.Table().Name
	}
	if _, err := s.Exec(ctx, s.DB, statement); err != nil {
		return database.Explain("dropping the index "+s.indexName(), err)
	}
	return s.reread(ctx)
}

// reread looks at the table again between two claims.
func (s *Store) reread(ctx context.Context) error {
	s.claiming <- struct{}{}
	defer func() { <-s.claiming }()
	clear(s.lanes)
	return s.ReadJobs(ctx)
}
