package queue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// fate is what befalls the next write that would last: a COMMIT, or a write
// outside of a transaction.
type fate int32

const (
	heard    fate = iota
	unheard       // it is done, and its answer is lost
	undone        // it is lost on the way
	nextTime      // one write is heard, the one after it is unheard
)

// losing is a driver's connector whose connections lose one write, or its
// answer.
type losing struct {
	of   driver.Driver
	dsn  string
	next atomic.Int32
	// cursor says that a move of the fleet's cursor is such a write, too.
	cursor bool
	writes atomic.Int32 // how many there were
}

func (l *losing) Driver() driver.Driver { return l.of }

func (l *losing) Connect(ctx context.Context) (driver.Conn, error) {
	opener, ok := l.of.(driver.DriverContext)
	if !ok {
		conn, err := l.of.Open(l.dsn)
		return &losingConn{Conn: conn, l: l}, err
	}
	connector, err := opener.OpenConnector(l.dsn)
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(ctx)
	return &losingConn{Conn: conn, l: l}, err
}

// write does a write that lasts, or not.
func (l *losing) write(do func() error) error {
	l.writes.Add(1)
	switch fate(l.next.Load()) {
	case undone:
		l.next.Store(int32(heard))
		return mysql.ErrInvalidConn
	case unheard:
		l.next.Store(int32(heard))
		if err := do(); err != nil {
			return err
		}
		return mysql.ErrInvalidConn
	case nextTime:
		l.next.Store(int32(unheard))
	}
	return do()
}

type losingConn struct {
	driver.Conn
	l    *losing
	inTx bool
}

func (c *losingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	c.inTx = err == nil
	return losingTx{tx, c}, err
}

type losingTx struct {
	driver.Tx
	c *losingConn
}

func (t losingTx) Commit() error {
	t.c.inTx = false
	err := t.c.l.write(t.Tx.Commit)
	if err != nil {
		_ = t.Tx.Rollback() // a server does so when the connection is gone; after a commit it does nothing
	}
	return err
}

func (t losingTx) Rollback() error {
	t.c.inTx = false
	return t.Tx.Rollback()
}

func (c *losingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result,
	err error) {
	do := func() error {
		result, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	}
	if c.inTx || !c.l.cursor && strings.Contains(query, "cmsjobs_cursors") {
		return result, do()
	}
	return result, c.l.write(do)
}

func (c *losingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows,
	err error) {
	do := func() error {
		rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return err
	}
	if c.inTx || strings.HasPrefix(strings.TrimPrefix(query, "("), "SELECT") {
		err = do()
		return rows, err
	}
	if err = c.l.write(do); err == nil || rows == nil {
		return rows, err
	}
	defer rows.Close()
	for values := make([]driver.Value, len(rows.Columns())); ; {
		if end := rows.Next(values); errors.Is(end, io.EOF) {
			return nil, err
		} else if end != nil {
			return nil, end
		}
	}
}

func (c *losingConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *losingConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// losingStore is the fixture's store on connections that lose writes.
func (f *fixture) losingStore() *losing {
	f.T.Helper()
	l := &losing{of: f.DB.DB.Driver(), dsn: f.DB.DSN}
	if f.Variant.Engine.IsMySQL() {
		l.dsn += "&interpolateParams=true" // else each statement is prepared, and passes the connection by
	}
	db := sqlx.NewDb(sql.OpenDB(l), f.DB.DriverName())
	f.T.Cleanup(func() { db.Close() })
	f.setStore(open1(f.T, &jobstest.Database{DB: db}, tables.Options{Registry: tablestest.Registry(),
		DatabaseClock: f.Clock.Now, Clock: f.Clock.Elapsed}))
	if f.Variant.Engine == jobstest.MySQL {
		f.packets, f.tables.TxOptions = losingPackets{database.PacketsOf(f.DB.DB), l}, nil
		f.oneStatement.Store(true)
	}
	return l
}

// losingPackets lose a packet, or its answer.
type losingPackets struct {
	*database.Packets
	l *losing
}

func (p losingPackets) Send(ctx context.Context, db *sqlx.DB, statements []string, args []any) (found []database.Sent,
	err error) {
	err = p.l.write(func() error {
		found, err = p.Packets.Send(ctx, db, statements, args)
		return err
	})
	return found, err
}

// Whatever becomes of a COMMIT whose answer does not come, a claim charges no
// attempt for it, an end is written once, and nothing is lost.
func TestALostAnswerToCommit(t *testing.T) {
	for _, v := range variants() {
		if v.Wall || v.Indexed {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			db := v.Database(t)
			for name, what := range map[string]fate{"unheard": unheard, "undone": undone} {
				t.Run("claim "+name, func(t *testing.T) { claimOutOfEarshot(openFixture(t, v, db), what) })
				t.Run("end "+name, func(t *testing.T) { endOutOfEarshot(openFixture(t, v, db), what) })
			}
			t.Run("end and claim", func(t *testing.T) { relayOutOfEarshot(openFixture(t, v, db)) })
			t.Run("second claim of one call", func(t *testing.T) { secondOutOfEarshot(openFixture(t, v, db)) })
		})
	}
}

func claimOutOfEarshot(f *fixture, what fate) {
	l := f.losingStore()
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
	l.next.Store(int32(what))
	ask := jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 2, Lease: lease}
	got, err := f.Claim(context.Background(), ask)
	if len(got) != 0 || database.Classify(err) != database.Unknown {
		f.T.Fatalf("%d claimed, %v", len(got), err)
	}
	f.comeBack(2)
}

// comeBack waits for as long as a doubt may last, and wants so many jobs back,
// none of them charged.
func (f *fixture) comeBack(want int) {
	f.T.Helper()
	f.Clock.Lengths += lease*3/4 + time.Second
	got := f.MustClaim(want)
	if len(got) != want {
		f.T.Fatalf("%d jobs are there to claim, want %d", len(got), want)
	}
	for _, c := range got {
		if c.Job.Attempt != 1 || c.Rescued {
			f.T.Errorf("attempt %d, rescued %v: the job was charged for a claim that nobody heard of", c.Job.Attempt,
				c.Rescued)
		}
	}
}

func endOutOfEarshot(f *fixture, what fate) {
	l := f.losingStore()
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
	var ends []jobs.Settlement
	for _, c := range f.MustClaim(2) {
		ends = append(ends, tablestest.End(c, jobs.Completed))
	}
	l.next.Store(int32(what))
	if _, err := f.Settle(context.Background(), ends); database.Classify(err) != database.Unknown {
		f.T.Fatalf("%v is %v", err, database.Classify(err))
	}
	for i, err := range f.MustSettle(ends...) {
		if err != nil {
			f.T.Errorf("end %d again: %v", i, err)
		}
	}
	if rows, runs := f.CountRows("SELECT COUNT(*) FROM jobs"),
		f.CountRows("SELECT COUNT(*) FROM cmsjobs_runs"); rows != 0 || runs != 2 {
		f.T.Errorf("%d jobs left, %d runs; want 0 and 2", rows, runs)
	}
}

// The end of a run was to bring the next job, and nobody heard whether it did.
func relayOutOfEarshot(f *fixture) {
	l := f.losingStore()
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`), tablestest.Job(`3`))
	held := tablestest.End(f.claimAhead()[0], jobs.Completed)
	if f.Variant.Layout == tables.Extended {
		f.classesOf("default").next = f.tables.Options.Clock().Add(time.Hour)
	}
	f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(time.Hour)
	f.cursorOf("default", 0).fromHead.read = f.tables.Options.Clock()
	l.next.Store(int32(unheard))
	if _, next, err := f.SettleAndClaim(context.Background(), []jobs.Settlement{held}, askOne); len(next) != 0 ||
		database.Classify(err) != database.Unknown {
		f.T.Fatalf("next %+v, %v", next, err)
	}
	if n := f.CountRows("SELECT COUNT(*) FROM jobs WHERE attempts > 0"); n != 1 {
		f.T.Fatalf("%d jobs were claimed along, want 1: this tests nothing", n)
	}
	if err := f.MustSettle(held)[0]; err != nil {
		f.T.Errorf("the end again: %v", err)
	}
	f.cursorOf("default", 0).next = time.Time{}
	f.classesOf("default").next = time.Time{}
	f.comeBack(2)
}

// What a claim got before the answer to its last write was lost is run; what
// that write took comes back.
func secondOutOfEarshot(f *fixture) {
	l := f.losingStore()
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
	f.tables.MaxBatch = 1 // row by row, as where there are no transactions
	l.next.Store(int32(nextTime))
	got, err := f.Claim(context.Background(), jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"},
		Limit: 2, Lease: lease})
	if err != nil || len(got) != 1 {
		f.T.Fatalf("%d claimed, %v; want the first", len(got), err)
	}
	f.comeBack(1)
}
