package listing_test

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/listing"
)

// A small table has a total under each filter; a large one has none.
func TestTotalCountsSmallTablesOnly(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			db.MustExec("CREATE TABLE things (id INT NOT NULL PRIMARY KEY)")
			fill := func(to int) {
				db.MustExec("DELETE FROM things")
				db.MustExec("INSERT INTO things SELECT seq FROM " + jobstest.Numbers(to))
			}
			total := func(where string, args ...any) int64 {
				n, err := listing.Total(t.Context(), db, "things", where, args...)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if n := total("1 = 1"); n != 0 {
				t.Errorf("an empty table has %d rows", n)
			}
			fill(listing.Bound)
			if all, some := total("1 = 1"), total("id % ? = 0", 10); all != listing.Bound || some != listing.Bound/10 {
				t.Errorf("of %d rows %d and %d are counted", listing.Bound, all, some)
			}
			fill(listing.Bound + 1)
			if n := total("id = ?", 1); n != -1 {
				t.Errorf("a large table's total is %d", n)
			}
		})
	}
}
