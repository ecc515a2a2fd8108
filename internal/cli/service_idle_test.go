package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Beside a change feed that works, an idle service looks for new rows every 5 s only, and
// asks 2 statements a second at most, all of them together. Its clock enqueues nothing.
func TestAnIdleServiceAsksLittle(t *testing.T) {
	t.Parallel()
	server := jobstest.Own(t, jobstest.MariaDB, "--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0")
	root := sqlx.NewDb(server.RootMySQL(t), "mysql")
	root.MustExec("CREATE DATABASE site")
	db := sqlx.MustOpen("mysql", server.MySQLDSN("site"))
	t.Cleanup(func() { db.Close() })
	if _, err := tables.CreateTables(t.Context(), db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	proxy := jobstest.NewProxy(t, server.Port)
	dsn := strings.Replace(server.MySQLDSN("site"), fmt.Sprint(":", server.Port), fmt.Sprint(":", proxy.Port), 1)
	call(t, nil, "--dsn="+dsn, "migrate", "up")
	s := startService(t, "feed: {dsn: '"+server.MySQLDSN("")+"'}\nschedule: {enabled: false}\n",
		"--dsn="+dsn)
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.log(), `"feed.works"`); {
		if time.Now().After(end) {
			t.Fatalf("no feed works:\n%s", s.log())
		}
		time.Sleep(5 * time.Millisecond)
	}
	const length, most = 30 * time.Second, 30/5 + 2 // of looks
	var seconds float64                             // as measured: a slow machine wakes up late
	var asked int64
	var looks int
	for range 5 { // what follows a start is over at some time; a length of time is what is measured
		root.MustExec("TRUNCATE mysql.general_log")
		root.MustExec("SET GLOBAL log_output='TABLE', GLOBAL general_log=ON")
		before, begun := proxy.Commands(), time.Now()
		time.Sleep(length)
		asked, seconds = proxy.Commands()-before, time.Since(begun).Seconds()
		root.MustExec("SET GLOBAL general_log=OFF")
		if err := root.Get(&looks, "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE "+
			"'SELECT id, queue, CASE %'"); err != nil {
			t.Fatal(err)
		}
		t.Logf("%.2f statements a second, %d looks", float64(asked)/seconds, looks)
		if float64(asked) <= 2*seconds && looks <= most {
			break
		}
	}
	if float64(asked) > 2*seconds || asked < 1 {
		t.Errorf("an idle service asks %.1f statements a second", float64(asked)/seconds)
	}
	if looks > most || looks < 1 {
		t.Errorf("beside a feed it looks for new rows %d times in %v", looks, length)
	}
}
