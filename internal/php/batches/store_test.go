package batches_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/php/batches"
)

func TestBatches(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) { testBatches(t, engine) })
	}
}

func testBatches(t *testing.T, engine jobstest.Engine) {
	db := jobstest.Open(t, engine)
	s := &batches.Store{DB: db.DB, Table: "bb_job_batches"}
	if list, err := s.Batches(t.Context(), jobs.Page{Limit: 5}); err != nil || len(list.Items) != 0 {
		t.Errorf("without the table: %v, %v", list, err)
	}
	// As Laravel 8's queue:batches-table makes it.
	db.MustExec(`CREATE TABLE bb_job_batches (id VARCHAR(255) PRIMARY KEY, name VARCHAR(255) NOT NULL, total_jobs INT
		NOT
		NULL, pending_jobs INT NOT NULL, failed_jobs INT NOT NULL, failed_job_ids TEXT NOT NULL, options TEXT NULL,
		cancelled_at INT NULL, created_at INT NOT NULL, finished_at INT NULL)`)
	for i := range 5 {
		db.MustExec(fmt.Sprintf("INSERT INTO bb_job_batches VALUES ('id-%d', 'Import %d', 10, 4, 2, '[\"a\",\"b\"]', "+
			"'not serialized at all', NULL, 1795000000, NULL)", i, i))
	}
	first, err := s.Batches(t.Context(), jobs.Page{Limit: 3})
	if err != nil || len(first.Items) != 3 || first.Items[0].ID != "id-4" || first.Next != "id-2" {
		t.Fatalf("%+v, %v", first, err)
	}
	rest, err := s.Batches(t.Context(), jobs.Page{Limit: 3, Cursor: first.Next})
	if err != nil || len(rest.Items) != 2 || rest.Items[0].ID != "id-1" || rest.Next != "" {
		t.Errorf("%+v, %v", rest, err)
	}
	b, err := s.Batch(t.Context(), "id-3")
	if err != nil || b.Total != 10 || b.Pending != 4 || b.Failed != 2 ||
		!slices.Equal(b.FailedJobs, []string{"a", "b"}) ||
		b.CreatedAt.Unix() != 1795000000 || !b.FinishedAt.IsZero() {
		t.Errorf("%+v, %v", b, err)
	}
	db.MustExec("UPDATE bb_job_batches SET failed_job_ids = '" + `["` + strings.Repeat("a", 36) + `"` +
		strings.Repeat(`,"`+strings.Repeat("b", 36)+`"`, 1500) + "' WHERE id = 'id-0'")
	if b, err := s.Batch(t.Context(), "id-0"); err != nil || len(b.FailedJobs) != 100 {
		t.Errorf("%d failed jobs are named, %v", len(b.FailedJobs), err)
	}
	if _, err := s.Batch(t.Context(), "none"); !errors.Is(err, jobs.ErrNotFound) {
		t.Error(err)
	}
}
