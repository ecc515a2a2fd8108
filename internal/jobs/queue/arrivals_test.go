package queue

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// Arrivals sees rows of all queues above a number, tells those that wait from
// claimed ones and says when a delayed one is due.
func TestArrivals(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			if last, err := f.Tables.LastNumber(bg); err != nil || last != 0 {
				t.Fatalf("the newest of an empty table is %d, %v", last, err)
			}
			for _, n := range []jobs.Spec{{Type: "test.plain", Queue: "a"},
				{Type: "test.plain", Queue: "b", Delay: time.Hour}, {Type: "test.plain", Queue: "c"}} {
				if _, err := f.Enqueue(bg, n); err != nil {
					t.Fatal(err)
				}
			}
			ask := jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"a"}, Limit: 1, Lease: lease}
			if got, err := f.Claim(bg, ask); err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			found, err := f.Tables.Arrivals(bg, 0, 10)
			if err != nil || len(found) != 3 {
				t.Fatalf("found %+v, %v", found, err)
			}
			claimed, delayed, due := found[0], found[1], found[2]
			if claimed.Waiting || claimed.Queue != "a" {
				t.Errorf("the claimed row is %+v", claimed)
			}
			if !delayed.Waiting || delayed.Queue != "b" || delayed.Delay < 55*time.Minute || delayed.Delay > time.Hour+
				time.Second {
				t.Errorf("the delayed row is %+v", delayed)
			}
			if !due.Waiting || due.Queue != "c" || due.Delay != 0 {
				t.Errorf("the row that is due is %+v", due)
			}
			if last, err := f.Tables.LastNumber(bg); err != nil || last != due.ID {
				t.Errorf("the newest row is %d, %v; want %d", last, err, due.ID)
			}
			if later, err := f.Tables.Arrivals(bg, claimed.ID, 1); err != nil || len(later) != 1 ||
				later[0].ID != delayed.ID {
				t.Errorf("after the first: %+v, %v", later, err)
			}
		})
	}
}

// A look above the newest row reads none of those that wait below it.
func TestALookForArrivalsReadsNoOtherRow(t *testing.T) {
	jobstest.AsRoot(t) // FLUSH STATUS is a right
	for _, v := range variants() {
		if v.Wall || v.Indexed || v.Layout != tables.Stock || !v.Engine.IsMySQL() {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			f.InsertRaw("default", `{"type":"test.plain"}`)
			columns := f.Tables.Layout.Insert()
			for have := 1; have < 2000; have *= 2 {
				f.DB.MustExec(fmt.Sprintf("INSERT INTO jobs (%s) SELECT %s FROM jobs", columns, columns))
			}
			last, err := f.Tables.LastNumber(bg)
			if err != nil {
				t.Fatal(err)
			}
			// One connection, whose counters say what its statement read.
			c, err := f.DB.Connx(bg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var statement string
			var args []any
			f.Tables.Watch = func(s string, a []any) { statement, args = s, a }
			if found, err := f.Tables.Arrivals(bg, last, 100); err != nil || len(found) != 0 {
				t.Fatal(found, err)
			}
			if _, err := c.ExecContext(bg, "FLUSH STATUS"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.ExecContext(bg, statement, args...); err != nil {
				t.Fatal(err)
			}
			var reads int
			rows, err := c.QueryContext(bg, "SHOW SESSION STATUS LIKE 'Handler_read%'")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var name string
				var n int
				if err := rows.Scan(&name, &n); err != nil {
					t.Fatal(err)
				}
				reads += n
			}
			if reads > 3 {
				t.Errorf("it read %d rows or keys", reads)
			}
		})
	}
}

// A look at a table whose rows have all ended reads none of them, although PostgreSQL keeps
// them until it vacuums; nor does a look at a queue before it that never had one.
func TestALookReadsNoDeletedRows(t *testing.T) {
	v := tablestest.Variant{Engine: jobstest.PostgreSQL, Layout: tables.Stock}
	f := openFixture(t, v, v.Database(t))
	f.InsertRaw("default", `{"type":"test.plain"}`)
	columns := f.Tables.Layout.Insert()
	const rows = 16_384
	for have := 1; have < rows; have *= 2 {
		f.DB.MustExec(fmt.Sprintf("INSERT INTO jobs (%s) SELECT %s FROM jobs", columns, columns))
	}
	f.DB.MustExec("ANALYZE jobs")
	f.claimIn(f.Store, 1, 0, "first", "default")
	f.DB.MustExec("UPDATE cmsjobs_cursors SET id = (SELECT MAX(id) FROM jobs) WHERE name LIKE '%/default'")
	f.noRescan(f.Store)
	f.claimIn(f.Store, 1, 0, "first", "default") // it sees where the table ends
	f.DB.MustExec("DELETE FROM jobs")
	looks := 0
	f.tables.Watch = func(statement string, args []any) {
		if !strings.Contains(statement, "MAX(id)") {
			return
		}
		looks++
		var plan string
		if err := f.DB.Get(&plan, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sqlx.Rebind(sqlx.DOLLAR, statement),
			args...); err != nil {
			t.Error(err)
			return
		}
		_, text, _ := strings.Cut(plan, `"Shared Hit Blocks": `)
		pages, _, _ := strings.Cut(text, ",")
		if n, err := strconv.Atoi(strings.TrimSpace(pages)); err != nil || n > 40 {
			t.Errorf("it reads %d pages, %v: %s\n%s", n, err, statement, plan)
		}
	}
	f.noRescan(f.Store)
	for range 2 {
		f.Clock.Lengths += 2 * emptyTTL
		if got := f.claimIn(f.Store, 1, 0, "first", "default"); len(got) != 0 {
			t.Errorf("claimed %+v of an empty table", got)
		}
	}
	if looks < 2 {
		t.Errorf("%d looks", looks)
	}
}
