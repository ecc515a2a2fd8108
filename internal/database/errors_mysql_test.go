package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// What a server says for itself, or by SIGNAL where it cannot be made to.
func TestWhatMySQLSaysIsClassified(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		db := jobstest.Open(t, engine)
		db.MustExec("CREATE TABLE k (id INT PRIMARY KEY, w VARCHAR(3), n INT, j JSON, CONSTRAINT small CHECK (n < 9))")
		db.MustExec("INSERT INTO k VALUES (1, 'a', 1, '{}')")
		signal := func(number int, text string) string {
			return fmt.Sprintf("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = '%s'", number, text)
		}
		for _, c := range []struct {
			statement string
			class     Class
			mysql     bool // MariaDB takes it
		}{
			{"UPDATE k SET w = 'long'", JobsFault, false},
			{"UPDATE k SET n = 99", JobsFault, false},
			{"UPDATE k SET j = '{'", JobsFault, false},
			{"UPDATE k SET j = JSON_SET('{\"a\":1}', 'b', 1)", JobsFault, true},
			{"UPDATE k SET j = _binary'{}'", JobsFault, true},
			{"SELECT /*+ MAX_EXECUTION_TIME(50) */ COUNT(*) FROM information_schema.columns a, " +
				"information_schema.columns b, information_schema.columns c", TooSlow, true},
			{signal(3100, "Error on observer while running replication hook"), RetryTransaction, false},
			{signal(3101, "Plugin instructed the server to rollback the current transaction."), RetryTransaction,
				false},
			{signal(3168, "Server is not available"), Elsewhere, false},
			{signal(1030, "Got error 28 - No space left on device from storage engine"), StopClaiming, false},
			{signal(1026, "Error writing file x (errno: 28 - No space left on device)"), StopClaiming, false},
			{signal(3675, "Create table failed, as disk is full"), StopClaiming, false},
		} {
			if c.mysql && engine == jobstest.MariaDB {
				continue
			}
			_, err := db.Exec(c.statement)
			if Classify(err) != c.class || Outage(err) != c.class.server() {
				t.Errorf("%s: %v is %v, want %v", c.statement, err, Classify(err), c.class)
			}
			if full := c.class == StopClaiming; SaysFull(err) != full {
				t.Errorf("%v says that the disk is full: %v, want %v", err, !full, full)
			}
		}
		t.Run("idle for too long", func(t *testing.T) { aHeldConnectionIsEnded(t, db) })
	})
}

// aHeldConnectionIsEnded lets the server end a connection in a transaction.
func aHeldConnectionIsEnded(t *testing.T, db *jobstest.Database) {
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var id, there int
	if err := conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"BEGIN", "UPDATE k SET n = 2", "SET SESSION wait_timeout = 1"} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for there = 1; there > 0; time.Sleep(50 * time.Millisecond) {
		if err := db.Get(&there, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); Classify(err) != Unknown || !Outage(err) {
		t.Errorf("%v is %v, want %v", err, Classify(err), Unknown)
	}
}

// A login that is refused for more than its password says what fixes it, and what
// it says does.
func TestARefusedLoginSaysWhatFixesIt(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		server := jobstest.Own(t, engine)
		root := server.RootMySQL(t)
		dsn := func(user string) string {
			return fmt.Sprintf("mysql://%s:s3cret@127.0.0.1:%d/mysql", user, server.Port)
		}
		for i, c := range []struct{ account, want, fix string }{
			{"PASSWORD EXPIRE", "password has expired", "ALTER USER %s PASSWORD EXPIRE NEVER"},
			{"ACCOUNT LOCK", "account is locked", "ALTER USER %s ACCOUNT UNLOCK"},
			{"REQUIRE SSL", "requires TLS (?tls=true", "ALTER USER %s REQUIRE NONE"},
			{"WITH MAX_USER_CONNECTIONS 1", "MAX_USER_CONNECTIONS", "ALTER USER %s WITH MAX_USER_CONNECTIONS 9"},
		} {
			t.Run(c.account, func(t *testing.T) {
				user := fmt.Sprint("u", i)
				name := user + "@'%'"
				must(t, root, "CREATE USER "+name+" IDENTIFIED BY 's3cret'", "GRANT ALL ON *.* TO "+name,
					"ALTER USER "+name+" "+c.account)
				if strings.Contains(c.account, "MAX") {
					db, err := Connect(t.Context(), ConnectOptions{DSN: dsn(user)})
					if err != nil {
						t.Fatal(err)
					}
					defer db.Close()
				}
				wantHint(t, dsn(user), c.want)
				must(t, root, fmt.Sprintf(c.fix, name))
				if c.account == "PASSWORD EXPIRE" { // a new password as well
					must(t, root, "ALTER USER "+name+" IDENTIFIED BY 's3cret'")
				}
				wantLogin(t, dsn(user))
			})
		}
		t.Run("TLS", func(t *testing.T) {
			must(t, root, "SET GLOBAL require_secure_transport = ON")
			defer must(t, root, "SET GLOBAL require_secure_transport = OFF")
			must(t, root, "CREATE USER tls@'%' IDENTIFIED BY 's3cret'", "GRANT ALL ON *.* TO tls@'%'")
			wantHint(t, dsn("tls"), "?tls=true")
			if engine == jobstest.MySQL { // which makes itself a certificate
				wantLogin(t, dsn("tls")+"?tls=skip-verify")
			}
		})
		if engine == jobstest.MySQL {
			t.Run("offline", func(t *testing.T) {
				must(t, root, "CREATE USER off@'%' IDENTIFIED BY 's3cret'", "GRANT SELECT ON *.* TO off@'%'",
					"SET GLOBAL offline_mode = ON")
				err := wantHint(t, dsn("off"), "offline mode")
				if Classify(err) != Elsewhere || !Away(err) {
					t.Errorf("%v is %v", err, Classify(err))
				}
				must(t, root, "SET GLOBAL offline_mode = OFF")
				wantLogin(t, dsn("off"))
			})
		}
	})
}

func must(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// wantHint wants a login to be refused with a hint, as what needs a person or
// another server, and no job.
func wantHint(t *testing.T, dsn, want string) error {
	t.Helper()
	db, err := Connect(context.Background(), ConnectOptions{DSN: dsn})
	if err == nil { // MariaDB lets in whose password has expired, and then answers nothing
		_, err = db.Exec("DO 1")
		db.Close()
		err = Explain("asking the server", err)
	}
	var my *mysql.MySQLError
	if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v: want %q and no password", err, want)
	}
	if class := Classify(err); !errors.As(err, &my) || class != StopClaiming && class != Elsewhere || !Outage(err) {
		t.Errorf("%v is %v", err, class)
	}
	return err
}

func wantLogin(t *testing.T, dsn string) {
	t.Helper()
	db, err := Connect(context.Background(), ConnectOptions{DSN: dsn})
	if err != nil {
		t.Fatalf("after what the hint says: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
