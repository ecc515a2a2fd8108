package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// loop is the bare loop, one process that does nothing but the statements that jobs
// need: it reads the next rows by their key, a block of them at once, and in one
// transaction, in as few trips as the server allows, deletes the rows that it reserved
// before (if they are still its own), writes a line of history for each and reserves
// the next. It shows what a server has to give to a worker that is as careful.
// It claims nothing beside others, renews, retries and answers nobody: where several run,
// each has a share of the rows that is known before.
type loop struct {
	dsn, server string
	rows        int    // a transaction
	share       string // of the rows, as "3/64" for the fourth of 64 equal parts; "" is all

	db     *sqlx.DB
	swap   func(ctx context.Context, done, next batch) error
	last   int64 // the row that was read last
	end    int64 // the last row of the share
	ahead  batch // read, not yet reserved
	worker string
}

// block is how many rows are read at once.
const block = 256

// row is a job.
type row struct {
	ID        int64  `db:"id"`
	Payload   string `db:"payload"`
	Available int64  `db:"available_at"`
	Created   int64  `db:"created_at"`
	uuid      string
	jobType   string
}

// batch are rows that are reserved together.
type batch []row

// ids of the rows.
func (b batch) ids() []int64 {
	ids := make([]int64, len(b))
	for i := range b {
		ids[i] = b[i].ID
	}
	return ids
}

// run speaks as a worker does (see process).
func (l *loop) run(ctx context.Context) error {
	var err error
	if l.db, err = database.Connect(ctx, database.ConnectOptions{DSN: l.dsn}); err != nil {
		return err
	}
	defer l.db.Close()
	if err := l.choose(); err != nil {
		return err
	}
	if err := l.readShare(ctx); err != nil { // the rows are there before a loop starts
		return err
	}
	host, _ := os.Hostname()
	l.worker = fmt.Sprintf("%s:%d:loop", host, os.Getpid())
	fmt.Println("ready")
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err != nil {
		return err
	}
	before := servers.OwnCPU()
	if err := l.work(ctx); err != nil {
		return err
	}
	used := servers.OwnCPU() - before
	_, _ = input.ReadString('\n') // its end is what counts
	fmt.Println(used.Microseconds())
	return nil
}

// readShare finds the rows of this loop: no other one has them.
func (l *loop) readShare(ctx context.Context) error {
	var part, parts int64 = 0, 1
	if l.share != "" {
		if _, err := fmt.Sscanf(l.share, "%d/%d", &part, &parts); err != nil {
			return fmt.Errorf("the share %q: %w", l.share, err)
		}
	}
	var first, last int64
	if err := l.db.QueryRowxContext(ctx, "SELECT MIN(id), MAX(id) FROM jobs").Scan(&first, &last); err != nil {
		return err
	}
	size := last - first + 1
	l.last, l.end = first-1+size*part/parts, first-1+size*(part+1)/parts
	return nil
}

// work goes on until no row waits.
func (l *loop) work(ctx context.Context) error {
	var held batch
	for {
		next, err := l.next(ctx)
		if err != nil {
			return err
		}
		if len(held)+len(next) == 0 {
			return nil
		}
		if err := l.swap(ctx, held, next); err != nil {
			return fmt.Errorf("%d rows from %d ended, %d reserved: %w", len(held), l.last, len(next), err)
		}
		if held = next; held.run() != nil {
			return fmt.Errorf("a job that cannot be read: %w", held.run())
		}
	}
}

// next are the rows to reserve.
func (l *loop) next(ctx context.Context) (batch, error) {
	if len(l.ahead) == 0 {
		err := l.db.SelectContext(ctx, &l.ahead, fmt.Sprintf("SELECT id, payload, available_at, created_at FROM jobs "+
			"WHERE id > %d AND id <= %d AND queue = 'default' AND reserved_at IS NULL AND available_at <= %d "+
			"ORDER BY id LIMIT %d", l.last, l.end, time.Now().Unix(), max(block, l.rows)))
		if err != nil || len(l.ahead) == 0 {
			return nil, err
		}
		l.last = l.ahead[len(l.ahead)-1].ID
	}
	n := min(l.rows, len(l.ahead))
	next := l.ahead[:n:n]
	l.ahead = l.ahead[n:]
	return next, nil
}

// run is the work of the jobs: what they are is read, and nothing done.
func (b batch) run() error {
	for i := range b {
		var envelope struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal([]byte(b[i].Payload), &envelope); err != nil {
			return err
		}
		b[i].jobType = envelope.Type
		b[i].uuid = tables.DerivedUUID("jobs", b[i].ID, b[i].Created)
	}
	return nil
}
