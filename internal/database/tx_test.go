package database

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Two transactions that lock two rows crosswise wait for each other. The server
// undoes one, and InTx repeats it: both are done, once.
func TestADeadlockIsRepeated(t *testing.T) {
	// it has one writer
	for _, engine := range slices.DeleteFunc(jobstest.Engines(), func(e jobstest.Engine) bool {
		return e == jobstest.SQLite
	}) {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			db.MustExec("CREATE TABLE k (id INT PRIMARY KEY, n INT NOT NULL)")
			db.MustExec("INSERT INTO k (id, n) VALUES (1, 0), (2, 0)")
			var met, both sync.WaitGroup // met: each has locked its first row
			met.Add(2)
			var mu sync.Mutex
			calls := 0
			for _, order := range [][]int{{1, 2}, {2, 1}} {
				both.Go(func() {
					first := true
					err := InTx(t.Context(), db.DB, "adding", func(tx *sqlx.Tx) error {
						mu.Lock()
						calls++
						mu.Unlock()
						for _, id := range order {
							if _, err := tx.Exec(tx.Rebind("UPDATE k SET n = n + 1 WHERE id = ?"), id); err != nil {
								return err
							}
							if first {
								first = false
								met.Done()
								met.Wait()
							}
						}
						return nil
					})
					if err != nil {
						t.Errorf("%v: %v", order, err)
					}
				})
			}
			both.Wait()
			var sum int
			if err := db.Get(&sum, "SELECT SUM(n) FROM k"); err != nil || sum != 4 || calls < 3 {
				t.Errorf("the rows add up to %d, want 4; %d calls; %v", sum, calls, err)
			}
		})
	}
}

func TestWhatFailsIsRolledBackAndNamed(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			db.MustExec("CREATE TABLE k (id INT PRIMARY KEY)")
			wrong, calls := errors.New("no such thing"), 0
			err := InTx(t.Context(), db.DB, "keeping a thing", func(tx *sqlx.Tx) error {
				calls++
				tx.MustExec("INSERT INTO k (id) VALUES (1)")
				return wrong
			})
			if !errors.Is(err, wrong) || !strings.HasPrefix(err.Error(), "keeping a thing: ") || calls != 1 {
				t.Errorf("%v after %d calls", err, calls)
			}
			var n int
			if err := db.Get(&n, "SELECT COUNT(*) FROM k"); err != nil || n != 0 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}

// A row whose key is taken stays as it is and does not pass for a new one, however the
// connection counts rows.
func TestInsertOrLockKeepsWhatIsThere(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for _, counts := range []string{"clientFoundRows=true", "clientFoundRows=false"} {
			t.Run(string(engine)+" "+counts, func(t *testing.T) {
				db := jobstest.Open(t, engine)
				db.MustExec("CREATE TABLE k (name VARCHAR(20) PRIMARY KEY, number BIGINT)")
				other, err := sqlx.Open(db.Driver, strings.Replace(db.DSN, "clientFoundRows=true", counts, 1))
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				d := Of(other)
				for _, isNew := range []bool{true, false, false} {
					r, err := other.Exec(other.Rebind(d.InsertOrLock("k", "name, number", "(?, 0)", "number")), "a")
					if err != nil {
						t.Fatal(err)
					}
					if got, err := d.IsNew(r); err != nil || got != isNew {
						t.Errorf("new: %t, %v; want %t", got, err, isNew)
					}
					if isNew {
						db.MustExec("UPDATE k SET number = 7")
					}
				}
				var number int
				if err := db.Get(&number, "SELECT number FROM k"); err != nil || number != 7 {
					t.Errorf("the row's number is %d, %v", number, err)
				}
			})
		}
	}
}

// TestEachWordOfADialect has each server understand it.
func TestEachWordOfADialect(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			d, ctx := Of(db), context.Background()
			db.MustExec("CREATE TABLE k (id INT PRIMARY KEY, w VARCHAR(20), n INT)")
			do := func(statement string, args ...any) int64 {
				t.Helper()
				r, err := db.Exec(db.Rebind(statement), args...)
				if err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
				n, err := r.RowsAffected()
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			rows := func(want string) {
				t.Helper()
				var got []string
				if err := db.Select(&got, "SELECT w FROM k ORDER BY id"); err != nil || strings.Join(got, " ") != want {
					t.Fatalf("%v, want %s; %v", got, want, err)
				}
			}
			do("INSERT INTO k (id, w, n) VALUES "+Rows("(?, ?, 1)", 2), 1, "a", 2, "b")
			if n := do(d.InsertIgnore("k", "id, w, n", Rows("("+Marks(3)+")", 2)), 2, "taken", 1, 3, "c", 1); n != 1 {
				t.Errorf("%d rows were inserted, want 1", n)
			}
			do(d.Upsert("k", "id, w, n", "(?, ?, ?)", "id", "w"), 1, "A", 9)
			rows("A b c")
			do("INSERT INTO k (id, w, n) VALUES (?, ?, ?)"+d.OnConflict("id", "n = k.n + "+d.Inserted("n")), 2, "x", 4)
			var five int
			if err := db.Get(&five, "SELECT n FROM k WHERE "+d.Ident("id")+" = 2"); err != nil || five != 5 {
				t.Errorf("%d, %v", five, err)
			}
			var same []int
			if err := db.Select(&same, db.Rebind("SELECT id FROM k WHERE "+d.SameBytes("w")), "a"); err != nil ||
				len(same) != 0 {
				t.Errorf("a is the same as A: %v, %v", same, err)
			}
			if n := do(d.DeleteSome("k", "id, w", "n < ?", "id", 1), 9); n != 1 {
				t.Errorf("%d rows were deleted, want 1", n)
			}
			rows("b c")
			if sum, ok := d.Checksum([]string{"id", "w"}); ok == d.OneWriter {
				t.Errorf("a checksum: %v", ok)
			} else if ok {
				do("SELECT " + sum + " FROM k")
			}
			for _, clock := range []string{d.Millis, d.Clock, d.Now + " * 1000"} {
				var ms int64
				if err := db.Get(&ms, "SELECT "+clock); err != nil ||
					time.Since(time.UnixMilli(ms)).Abs() > time.Minute {
					t.Errorf("%s is %d: %v", clock, ms, err)
				}
			}
			key := d.Choose(Variants{MySQL: "INT AUTO_INCREMENT PRIMARY KEY", PostgreSQL: "SERIAL PRIMARY KEY",
				SQLite: "INTEGER PRIMARY KEY"})
			do("CREATE TABLE numbered (id " + key + ", w VARCHAR(20))")
			for want := int64(1); want < 3; want++ {
				if id, err := InsertID(ctx, db.DB, "INSERT INTO numbered (w) VALUES (?)", "x"); id != want ||
					err != nil {
					t.Errorf("the row got %d, want %d; %v", id, want, err)
				}
			}
			if x, err := AskDurability(ctx, db.DB); err != nil || x.Setting == "" {
				t.Errorf("%+v, %v", x, err)
			}
		})
	}
}
