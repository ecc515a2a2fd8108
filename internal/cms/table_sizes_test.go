package cms_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestTableSizes(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			site := &cms.Site{DB: jobstest.Migrated(t, engine).DB}
			list, err := site.TableSizes(t.Context())
			if err != nil || len(list) == 0 {
				t.Fatalf("TableSizes = %v, %v", list, err)
			}
			if site.DB.DriverName() != "sqlite" && !slices.ContainsFunc(list, func(s cms.TableSize) bool {
				return s.Name == "cmsjobs_runs" && s.Bytes > 0
			}) {
				t.Errorf("cmsjobs_runs is not among %v", list)
			}
			if site.DB.DriverName() == "sqlite" && list[0].Bytes <= 0 {
				t.Errorf("the file takes %d bytes", list[0].Bytes)
			}
		})
	}
}

// A table that grows after somebody looked shows its size: MySQL 8 remembers what it
// said for a day.
func TestTableSizesAreOfNow(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		db := jobstest.Open(t, engine)
		site := &cms.Site{DB: db.DB}
		db.MustExec("CREATE TABLE posts (id INT AUTO_INCREMENT PRIMARY KEY, body LONGTEXT)")
		size := func() int64 {
			list, err := site.TableSizes(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			return list[0].Bytes
		}
		var remembered []int64 // as a monitor would read it: it makes the server remember
		if err := db.Select(&remembered, "SELECT CAST(DATA_LENGTH AS SIGNED) FROM information_schema.TABLES WHERE "+
			"TABLE_SCHEMA = DATABASE()"); err != nil {
			t.Fatal(err)
		}
		before := size()
		for range 20 {
			db.MustExec("INSERT INTO posts (body) VALUES (REPEAT('x', 400000))")
		}
		// InnoDB itself counts again in the background.
		for deadline := time.Now().Add(30 * time.Second); size() < before+1<<20; {
			if time.Now().After(deadline) {
				t.Fatalf("after 8 MB were written: %d bytes, %d before", size(), before)
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}
