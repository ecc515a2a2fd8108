package jobstest

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

// AwaitLocks returns when n sessions of a MariaDB, MySQL or PostgreSQL database wait for
// locks that others have. It ends the test when they do not within 20 seconds.
func (d *Database) AwaitLocks(t testing.TB, n int) {
	t.Helper()
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ask, waiting := d.locks(t)
	// InnoDB shows the same list again to who asks within a tenth of a second.
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for got := -1; got < n; <-tick.C {
		if err := ask.GetContext(soon, &got, waiting); err != nil {
			t.Fatalf("%d of %d sessions wait for locks: %v", got, n, err)
		}
	}
}

func (d *Database) locks(t testing.TB) (ask *sqlx.DB, waiting string) {
	if d.Engine == PostgreSQL {
		return d.DB, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = CURRENT_DATABASE() AND " +
			"wait_event_type = 'Lock'"
	}
	// A site's account has no PROCESS right, which the server's own tables ask.
	return d.Root(t), "SELECT COUNT(*) FROM information_schema.innodb_trx JOIN information_schema.processlist " +
		"ON id = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()"
}
