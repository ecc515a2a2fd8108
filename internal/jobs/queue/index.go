package queue

import "context"

// OfferIndex is the statement that adds the index which serves claims, for an
// administrator to read; "" where there is one already.
func (s *Store) OfferIndex() string { return s.tables.OfferIndex() }

// AddIndex adds the offered index to the CMS's table.
func (s *Store) AddIndex(ctx context.Context) error {
	if err := s.tables.AddIndex(ctx); err != nil {
		return err
	}
	return s.reread(ctx)
}

// DropIndex removes the index that AddIndex added, where it is there.
func (s *Store) DropIndex(ctx context.Context) error {
	if err := s.tables.DropIndex(ctx); err != nil {
		return err
	}
	return s.reread(ctx)
}

// reread looks at the table again between two claims.
func (s *Store) reread(ctx context.Context) error {
	s.claiming <- struct{}{}
	defer func() { <-s.claiming }()
	clear(s.lanes)
	return s.tables.ReadJobs(ctx)
}
