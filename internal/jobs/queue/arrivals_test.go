package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
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
