package queue

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/groupcommit"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// combinedJobs is how many jobs share a transaction at most.
const combinedJobs = 500

// newEnqueues puts the enqueues of callers that come at the same time into one
// transaction.
func (s *Store) newEnqueues() *groupcommit.Group[*enqueueRequest] {
	return groupcommit.New(groupcommit.Config[*enqueueRequest]{
		Commit:  s.insertTogether,
		Size:    func(r *enqueueRequest) int { return len(r.list) },
		MaxSize: combinedJobs,
		Final:   func(err error) bool { return database.Classify(err).Unclear() },
	})
}

// insertTogether inserts the jobs of several callers, all or none.
func (s *Store) insertTogether(ctx context.Context, requests []*enqueueRequest) error {
	all := requests[0].list
	if len(requests) > 1 {
		all = nil
		for _, r := range requests {
			all = append(all, r.list...)
		}
	}
	receipts, err := s.insertInTx(ctx, all)
	if err != nil {
		return err
	}
	for _, r := range requests {
		r.receipts, receipts = receipts[:len(r.list):len(r.list)], receipts[len(r.list):]
	}
	return nil
}

func (s *Store) insertInTx(ctx context.Context, list []jobs.Spec) (receipts []jobs.Receipt, err error) {
	if s.single(list) {
		receipts, err = s.insertAll(ctx, tables.Transaction{Main: s.tables.DB, Own: s.tables.OwnDB}, list)
		if database.Classify(err) != database.RetryTransaction {
			return receipts, err
		}
	}
	err = s.tables.InTx(ctx, "inserting jobs", func(t tables.Transaction) error {
		receipts, err = s.insertAll(ctx, t, list)
		return err
	})
	return receipts, err
}

// single says that the list is one statement, which needs no transaction.
func (s *Store) single(list []jobs.Spec) bool {
	return len(list) == 1 && list[0].UUID == "" && list[0].UniqueKey == ""
}
