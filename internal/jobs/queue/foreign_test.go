package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A claim reads so many rows of others and no more, and says that it has not
// seen all; claims at once after it come to ours. Large payloads of others are
// not read in large pages, nor stepped over unread.
func TestAClaimThatEndsAtItsBoundsSaysSo(t *testing.T) {
	const foreign = 50 // one of them is a page, and 20 pages are a claim
	for _, v := range variants() {
		if v.Wall {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			large := fmt.Sprintf(`{"type":"other.plugin","data":%q}`, strings.Repeat("x", wholePage/2))
			f.InsertRaw("default", large)
			columns := f.Store.tables.Layout.Insert()
			for have := 1; have < foreign; have *= 2 {
				f.DB.MustExec(fmt.Sprintf("INSERT INTO jobs (%s) SELECT %s FROM jobs LIMIT %d", columns, columns,
					foreign-have))
			}
			f.InsertRaw("default", fmt.Sprintf(`{"type":"test.plain","data":%q}`, strings.Repeat("y", wholePayload)))
			ask := jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 1, Lease: lease}
			for try := 1; ; try++ {
				got, err := f.Claim(bg, ask)
				if len(got) == 1 {
					if try < 3 || got[0].Fault != nil {
						t.Errorf("claimed at try %d: %v", try, got[0].Fault)
					}
					break
				}
				if !errors.Is(err, jobs.ErrUnseen) {
					t.Fatalf("try %d: %v, though a job is due", try, err)
				}
			}
			// A worker that dies is noticed behind all these rows, too.
			f.Clock.Ahead += 2 * time.Minute
			f.Clock.Lengths += time.Minute
			for try := 1; ; try++ {
				got, err := f.Claim(bg, ask)
				if len(got) == 1 && got[0].Rescued {
					break
				}
				if len(got) != 0 || err != nil && !errors.Is(err, jobs.ErrUnseen) || try > 50 {
					t.Fatalf("try %d: %+v, %v, though a lease has ended", try, got, err)
				}
				if err == nil {
					f.Clock.Lengths += 10 * time.Second
				}
			}
		})
	}
}

// Payloads of others that are larger than a page holds whole are read again together, as
// many as have the size of a page: a queue of mails that PHP will send costs few statements.
func TestForeignPayloadsAreReadTogether(t *testing.T) {
	const foreign = 200
	large := fmt.Sprintf(`{"type":"other.plugin","data":%q}`, strings.Repeat("x", 2*wholePayload))
	for _, v := range variants() {
		if v.Wall {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			for range foreign {
				f.InsertRaw("default", large)
			}
			f.InsertRaw("default", `{"type":"test.plain"}`)
			statements := f.Store.tables.Statements()
			got, err := f.Claim(bg, jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 1,
				Lease: lease})
			statements = f.Store.tables.Statements() - statements
			if err != nil || len(got) != 1 || statements > foreign/5 {
				t.Errorf("%d jobs by %d statements, %v", len(got), statements, err)
			}
		})
	}
}

// Of jobs of ours whose payloads are large, a claim reads as many at once as it wants, also
// where it reads more rows beside.
func TestOurLargePayloadsAreClaimedTogether(t *testing.T) {
	const ours = 300
	f := openFixture(t, variants()[0], variants()[0].Database(t))
	f.enqueueLarge(ours, 2*wholePayload)
	statements := f.Store.tables.Statements()
	got, err := f.Claim(bg, jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: ours - 50, Soon: 50,
		Lease: lease})
	statements = f.Store.tables.Statements() - statements
	if err != nil || len(got) != ours-50 || statements > 10 {
		t.Errorf("%d jobs by %d statements, %v", len(got), statements, err)
	}
}

// TestUUIDsOfRowsFollowEachOther: random ones would be written all over the history's index.
func TestUUIDsOfRowsFollowEachOther(t *testing.T) {
	before := ""
	for _, row := range [][2]int64{{1, 1700000000}, {2, 1700000000}, {255, 1700000000}, {256, 1700000000},
		{3, 1700000001}, {1 << 40, 1700000001}} {
		id := tables.DerivedUUID("jobs", row[0], row[1])
		if id <= before {
			t.Errorf("row %d of %d has %s, behind %s", row[0], row[1], id, before)
		}
		if !tables.Derived(id) || id != tables.DerivedUUID("jobs", row[0], row[1]) {
			t.Errorf("%s is no derived UUID, or not always the same", id)
		}
		if id == tables.DerivedUUID("other_jobs", row[0], row[1]) {
			t.Errorf("%s is another table's, too", id)
		}
		before = id
	}
	if tables.Derived(newUUID()) { // of version 7
		t.Error("the UUID of a new job counts as derived")
	}
}
