package binlog

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// Target says what a replay changes.
type Target struct {
	// DSN names the database into which the dump was loaded (go-sql-driver's form), on a
	// server of the kind that wrote the log. Nothing else is changed.
	DSN string
	// Schema is the database whose changes are applied.
	Schema string
	// Dump is what was loaded: rows of tables that it holds without rows, or not at all,
	// are left out.
	Dump dump.Summary
	// At is the moment: what was committed in its second or before is applied.
	At time.Time
	// DropDefiners makes the account the definer of views and programs.
	DropDefiners bool
	// Progress receives the time that the replay came to; nil is nobody.
	Progress func(time.Time)
}

// Result says what a replay did.
type Result struct {
	// Transactions were applied, those that changed nothing of the database not counted.
	Transactions int64 `json:"transactions"`
	Statements   int64 `json:"statements"` // of definitions
	// Last is the time of the last one; zero where there was none.
	Last time.Time `json:"last,omitzero"`
	// Next is the time of the first transaction that was not applied; zero where the
	// archive ends before one.
	Next time.Time `json:"next,omitzero"`
	// Position is the end of the last one in the log; "" where there was none.
	Position string `json:"position,omitempty"`
	// Skipped is how many events of rows were left out, by table.
	Skipped map[string]int64 `json:"skipped,omitempty"`
	// Notes say what was left out besides.
	Notes []string `json:"notes,omitempty"`
}

// Count walks through a chain and says what a replay of it would do. Nothing is changed.
func (r *Reader) Count(ctx context.Context, c Chain, t Target) (Result, error) {
	return r.replay(ctx, c, t, nil)
}

// Replay applies a chain to a database.
func (r *Reader) Replay(ctx context.Context, c Chain, t Target) (Result, error) {
	pool, _, err := dump.Connect(t.DSN)
	if err != nil {
		return Result{}, err
	}
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("connecting to replay the log: %w", err)
	}
	defer conn.Close()
	return r.replay(ctx, c, t, conn)
}

// replay applies to a connection; nil only counts.
func (r *Reader) replay(ctx context.Context, c Chain, t Target, conn *sql.Conn) (Result, error) {
	p := &replayer{ctx: ctx, conn: conn, t: t, base: map[string]bool{}, left: map[string]bool{},
		result: Result{Skipped: map[string]int64{}}}
	for _, table := range t.Dump.Tables {
		p.base[table.Name] = true
		if table.Empty {
			p.left[table.Name] = true
		}
	}
	if err := p.prepare(); err != nil {
		return p.result, err
	}
	err := r.walk(ctx, c, func(e event) error {
		if err := p.event(e); err != nil && !errors.Is(err, errStop) {
			return fmt.Errorf("applying the log at %s:%d (%s UTC): %w", e.file, e.offset,
				time.Unix(int64(e.Header.Timestamp), 0).UTC().Format(time.DateTime), err)
		} else if err != nil {
			return err
		}
		return nil
	})
	if err == nil {
		err = p.end(false)
	}
	return p.result, err
}

// replayer applies one event after the other.
type replayer struct {
	ctx    context.Context
	conn   *sql.Conn
	t      Target
	names  rewriter
	base   map[string]bool // tables of the dump
	left   map[string]bool // those whose rows are left out
	there  map[string]bool // tables of the database now
	result Result

	group  group
	rows   batch
	format []byte // the description that BINLOG was last given
	state  string // the settings of the session
	before []string
	told   time.Time
	at     string // the end of the event
}

// group is the transaction that the events are of.
type group struct {
	explicit bool // it began by a BEGIN
	open     bool // something of it was applied
	xa       bool
	moment   int64 // of its commit, where its begin says it
}

func (p *replayer) prepare() error {
	c, err := mysql.ParseDSN(p.t.DSN)
	if err != nil {
		return errors.New("the DSN of the database to replay into cannot be read")
	}
	others := map[string]bool{}
	p.names = rewriter{from: p.t.Schema, to: c.DBName,
		others: func(name string) bool { return others[strings.ToLower(name)] }}
	if p.conn == nil {
		return nil
	}
	names, err := p.column("SHOW DATABASES")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.EqualFold(name, p.t.Schema) && !strings.EqualFold(name, c.DBName) {
			others[strings.ToLower(name)] = true
		}
	}
	limit := "SET SESSION max_execution_time = 0"
	if p.mariaDB() {
		limit = "SET SESSION max_statement_time = 0"
	}
	for _, statement := range []string{limit, "SET SESSION wait_timeout = 28800"} {
		if err := p.exec(statement); err != nil {
			return err
		}
	}
	return p.look()
}

// look sees which tables there are.
func (p *replayer) look() error {
	if p.conn == nil {
		return nil
	}
	names, err := p.column("SHOW TABLES")
	p.there = make(map[string]bool, len(names))
	for _, name := range names {
		p.there[name] = true
	}
	return err
}

func (p *replayer) column(query string) (all []string, err error) {
	rows, err := p.conn.QueryContext(p.ctx, query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	return all, rows.Err()
}

func (p *replayer) exec(statement string) error {
	if p.conn == nil {
		return nil
	}
	_, err := p.conn.ExecContext(p.ctx, statement)
	return err
}

// begin begins a transaction of the log. One that is later than the moment ends the walk.
func (p *replayer) begin(moment int64) error {
	if p.group.open {
		return errors.New("a transaction begins before the last one ended")
	}
	p.group, p.before = group{moment: moment}, nil
	p.rows.reset()
	return p.late(moment)
}

// late ends the walk where a transaction is later than the moment.
func (p *replayer) late(moment int64) error {
	if moment == 0 || moment <= p.t.At.Unix() {
		return nil
	}
	p.result.Next = time.Unix(moment, 0).UTC()
	if err := p.end(false); err != nil {
		return err
	}
	return errStop
}

// open begins the transaction in the database, when something of it is to be applied.
func (p *replayer) open() error {
	if p.group.xa {
		return errors.New("it is of an XA transaction, which cannot be replayed")
	}
	if p.group.open || !p.group.explicit {
		return nil
	}
	p.group.open = true
	return p.exec("BEGIN")
}

func (p *replayer) commit(moment int64) error {
	if p.group.moment == 0 {
		if err := p.late(moment); err != nil {
			return err
		}
	}
	if err := p.rows.flush(p); err != nil {
		return err
	}
	if p.group.open {
		if err := p.exec("COMMIT"); err != nil {
			return err
		}
		p.applied(max(p.group.moment, moment))
	}
	p.group = group{}
	return nil
}

func (p *replayer) applied(moment int64) {
	p.result.Transactions++
	p.result.Last, p.result.Position = time.Unix(moment, 0).UTC(), p.at
}

// end rolls back what is open: the log ends here, or what follows is later.
func (p *replayer) end(xa bool) error {
	if xa {
		return errors.New("an XA transaction cannot be replayed")
	}
	open := p.group.open
	p.group = group{}
	p.rows.reset()
	if open {
		return p.exec("ROLLBACK")
	}
	return nil
}

// describe gives the server the description of the events that follow.
func (p *replayer) describe(raw []byte) error {
	statement := "BINLOG '" + base64.StdEncoding.EncodeToString(raw) + "'"
	p.format = raw
	err := p.exec(statement)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == privilegeDenied {
		return NoRightToReplay(p.t.Dump.Server)
	}
	if err != nil || p.mariaDB() {
		return err
	}
	return p.exec("SET @@session.gtid_next = 'AUTOMATIC'") // the description set it to what follows in a log
}

func (p *replayer) mariaDB() bool {
	return dump.IsMariaDB(p.t.Dump.Server)
}
