package tables

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// OfferIndex is the statement that adds the index which serves claims, for an
// administrator to read; "" where there is one already.
func (s *Tables) OfferIndex() string {
	t := s.Layout.Table()
	if t.Ordered != "" {
		return ""
	}
	columns := "queue, " + t.Due.Name
	if s.Layout.Name() == Extended {
		columns = "queue, status, priority, " + t.Due.Name + ", id"
	} else if !s.Dialect.KeyInIndexes {
		columns += ", id"
	}
	return fmt.Sprintf("CREATE INDEX %s ON %s (%s)", s.Dialect.Ident(s.indexName()), t.Name, columns)
}

func (s *Tables) indexName() string { return "cmsjobs_" + s.Layout.Table().Plain + "_due" }

// AddIndex adds the offered index to the CMS's table. It is the one change that
// we ever make there, and only when an administrator asks for it. ReadJobs sees
// the index.
func (s *Tables) AddIndex(ctx context.Context) error {
	statement := s.OfferIndex()
	if statement == "" {
		return nil
	}
	if _, err := s.Exec(ctx, s.DB, statement); err != nil {
		return database.Explain("adding the index "+s.indexName(), err)
	}
	return nil
}

// DropIndex removes the index that AddIndex added, where it is there.
func (s *Tables) DropIndex(ctx context.Context) error {
	t := s.Layout.Table()
	indexes, err := s.IndexesOf(ctx, s.DB, t.Plain)
	if err != nil {
		return err
	}
	if _, added := indexes[s.indexName()]; !added {
		return nil
	}
	if _, err := s.Exec(ctx, s.DB, s.Dialect.DropIndex(s.Dialect.Ident(s.indexName()), t.Name)); err != nil {
		return database.Explain("dropping the index "+s.indexName(), err)
	}
	return nil
}
