package dump

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/semaphore"
)

// maxStatement bounds what a restore holds of one statement: the largest
// packet that servers take.
const maxStatement = 1 << 30

// LoadOptions choose how a dump is restored.
type LoadOptions struct {
	// Workers insert the rows of so many tables at the same time; 0 means 4.
	Workers int
	// DropDefiners makes the restoring user the definer of views and routines.
	DropDefiners bool
	// Adapt writes a statement for a server of another kind; nil leaves them as they
	// are. Rows are not shown to it.
	Adapt func(statement []byte) []byte
	// Stage writes each statement, after Adapt, for other tables than it names; nil is
	// not run. A nil Stage leaves all as they are.
	Stage func(part Part, statement []byte) []byte
}

// Loader restores the pieces of a MySQL dump into a database: the rows of each
// table in their order on one connection, those of the tables that follow on
// others beside it, everything else on one more, in order. Rows out of their
// order would split the pages of the primary key, which costs the server a
// third more time than a second connection saves. Where a server stores texts
// as a dump has them it is not asked to convert them, which is a quarter of its work.
type Loader struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	pool    *sql.DB
	conn    *sql.Conn
	options LoadOptions

	only    func(part Part, statement []byte) bool
	split   *Splitter
	part    Part
	table   string
	inserts []chan insert       // one for each worker
	memory  *semaphore.Weighted // of INSERTs that wait or run
	alone   bool                // the table's engine knows no transactions
	raw     []byte              // begins the INSERTs whose texts are stored as the dump has them; nil for none
	turn    int                 // whose the table's rows are
	pending sync.WaitGroup      // INSERTs that are not committed
	workers sync.WaitGroup
}

// NewLoader connects to the database that the DSN names.
func NewLoader(ctx context.Context, dsn string, o LoadOptions) (*Loader, error) {
	pool, _, err := Connect(dsn)
	if err != nil {
		return nil, err
	}
	if o.Workers <= 0 {
		o.Workers = 4
	}
	l := &Loader{pool: pool, options: o, memory: semaphore.NewWeighted(waiting)}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	if l.conn, err = loadingConn(ctx, pool); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting for the restore: %w", err), pool.Close())
	}
	l.split = l.splitter()
	for range o.Workers {
		inserts := make(chan insert, queued)
		l.inserts = append(l.inserts, inserts)
		l.workers.Go(func() { l.work(inserts) })
	}
	return l, nil
}

func (l *Loader) splitter() *Splitter { return NewSplitter(maxStatement, l.statement) }

// loadingConn is a connection with the settings that a dump begins with.
func loadingConn(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(settings), "\n") {
		if _, err := conn.ExecContext(ctx, strings.TrimSuffix(statement, ";")); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	// Rows were once allowed that a CHECK forbids. Only MariaDB knows it.
	if _, err := conn.ExecContext(ctx, "SET check_constraint_checks = 0"); err != nil && !unknownVariable(err) {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func unknownVariable(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1193
}

func describe(statement string, err error) error {
	return fmt.Errorf("restoring %.80q: %w", statement, err)
}

// Load restores one piece. Pieces come in the order of the dump.
func (l *Loader) Load(part Part, table string, piece []byte) error {
	if part != l.part {
		if err := l.split.Close(); err != nil {
			return err
		}
		l.split = l.splitter()
	}
	if table != l.table && table == "" {
		l.pending.Wait() // what follows the tables needs their rows
	}
	if table != l.table {
		l.turn = (l.turn + 1) % len(l.inserts)
	}
	l.part, l.table = part, table
	if _, err := l.split.Write(piece); err != nil {
		return l.err(err)
	}
	return nil
}

// Only lets through the statements that wanted accepts. It is called before
// the first piece: a statement may be handed over later than its piece came.
func (l *Loader) Only(wanted func(part Part, statement []byte) bool) { l.only = wanted }

// err prefers the first error of a worker.
func (l *Loader) err(err error) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return err
}

func (l *Loader) statement(statement []byte) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if l.only != nil && !l.only(l.part, statement) {
		return nil
	}
	if l.table != "" && bytes.HasPrefix(statement, []byte("INSERT ")) {
		return l.row(statement)
	}
	if l.table != "" && bytes.HasPrefix(statement, []byte("REPLACE ")) {
		l.pending.Wait() // it would wait for locks of rows beside it
	}
	if statement = l.staged(l.adapted(statement)); statement == nil {
		return nil
	}
	if _, err := l.conn.ExecContext(l.ctx, string(statement)); err != nil {
		return describe(string(statement), err)
	}
	return nil
}

// adapted is a statement that is no INSERT as this server takes it.
func (l *Loader) adapted(statement []byte) []byte {
	if l.options.Adapt != nil && !bytes.HasPrefix(statement, []byte("REPLACE ")) &&
		!bytes.HasPrefix(statement, []byte("SET @")) {
		statement = l.options.Adapt(statement)
	}
	if engine := engineOf(statement); engine != "" {
		l.alone = !transactional(engine)
		l.raw = rawInserts(statement)
	}
	if l.options.DropDefiners && l.table == "" {
		statement = Definer.ReplaceAll(statement, nil)
	}
	return statement
}

func (l *Loader) staged(statement []byte) []byte {
	if l.options.Stage == nil {
		return statement
	}
	return l.options.Stage(l.part, statement)
}

// engineOf reads the engine from a CREATE TABLE as servers write it.
func engineOf(statement []byte) string {
	if !bytes.HasPrefix(statement, []byte("CREATE TABLE")) {
		return ""
	}
	_, options, _ := bytes.Cut(statement, []byte("\n) "))
	return string(bytes.TrimPrefix(engineOption.Find(options), []byte("ENGINE=")))
}

var engineOption = regexp.MustCompile(`ENGINE=\w+`)

// ErrAborted says that a restore was not to be kept.
var ErrAborted = errors.New("the restore was aborted")

// Abort stops the workers. What was restored stays as it is.
func (l *Loader) Abort() error {
	l.cancel(ErrAborted)
	if err := l.Close(); !errors.Is(err, ErrAborted) && !errors.Is(err, ErrTorn) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Close waits for the last rows. It reports a dump that ends too early, if
// nothing else went wrong before.
func (l *Loader) Close() error {
	err := l.split.Close()
	for _, inserts := range l.inserts {
		close(inserts)
	}
	l.workers.Wait()
	err = l.err(err)
	l.cancel(nil)
	return errors.Join(err, l.conn.Close(), l.pool.Close())
}
