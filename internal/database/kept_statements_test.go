package database

import (
	"context"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"testing"

	"modernc.org/sqlite"
)

// prepares counts what a connection prepares.
type prepares struct {
	pooledConn
	n *int
}

func (c prepares) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	*c.n++
	return c.pooledConn.PrepareContext(ctx, query)
}

func openKept(t *testing.T) (keptConn, *int) {
	t.Helper()
	conn, err := new(sqlite.Driver).Open("file:" + filepath.Join(t.TempDir(), "cms.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	n := new(int)
	c := keptConn{prepares{conn.(pooledConn), n}, map[string]driver.Stmt{}}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, n
}

func (c keptConn) mustExec(t *testing.T, query string, values ...any) int64 {
	t.Helper()
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	r, err := c.ExecContext(t.Context(), query, args)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	n, err := r.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A statement that writes more than once is prepared once for all, and does what it says each time: with other
// values, after it failed, and when its table has changed.
func TestSQLiteKeepsStatementsThatWrite(t *testing.T) {
	c, prepared := openKept(t)
	c.mustExec(t, "CREATE TABLE k (n INT UNIQUE)")
	const insert, update = "INSERT INTO k (n) VALUES (?)", "UPDATE k SET n = n + 10 WHERE n < ?"
	for i := range int64(3) {
		c.mustExec(t, insert, i)
	}
	if _, err := c.ExecContext(t.Context(), insert, []driver.NamedValue{{Ordinal: 1, Value: int64(2)}}); err == nil {
		t.Error("a second row with a unique value was inserted")
	}
	if n := c.mustExec(t, update, int64(2)); n != 2 {
		t.Errorf("%d rows were changed, want 2", n)
	}
	c.mustExec(t, "ALTER TABLE k ADD COLUMN m INT")
	c.mustExec(t, insert, int64(7))
	if n := c.mustExec(t, update, int64(8)); n != 2 {
		t.Errorf("%d rows were changed in a changed table, want 2", n)
	}
	if *prepared != 2 {
		t.Errorf("%d statements were prepared, want 2", *prepared)
	}
}

// Of many texts a bounded number is kept, and of long ones none.
func TestSQLiteKeepsABoundedNumberOfStatements(t *testing.T) {
	c, _ := openKept(t)
	c.mustExec(t, "CREATE TABLE k (n INT)")
	for i := range 3*maxKept + 1 {
		c.mustExec(t, fmt.Sprintf("INSERT INTO k (n) VALUES (%d)", i))
		if len(c.kept) > maxKept {
			t.Fatalf("%d statements are kept, want %d at most", len(c.kept), maxKept)
		}
	}
	if n := c.mustExec(t, fmt.Sprintf("UPDATE k SET n = 0 -- %*d", maxKeptLength, 1)); n != 3*maxKept+1 {
		t.Errorf("%d rows were changed, want %d", n, 3*maxKept+1)
	}
	if len(c.kept) != 1 {
		t.Errorf("%d statements are noted, want the last short one", len(c.kept))
	}
}
