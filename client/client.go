package client

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Options say which tables are meant. The zero value is good for a CMS
// without a table prefix.
type Options struct {
	Prefix string // of the CMS's tables (DB_PREFIX)
	// Queue takes jobs that name none: "cmsjobs".
	Queue string
	Now   func() time.Time // for new ids; nil is time.Now
}

// Client writes jobs into one database. It is safe for concurrent use.
type Client struct {
	db      *sql.DB
	table   table
	options Options
}

// New looks at the jobs table in db. driver is the database/sql driver's name:
// mysql, pgx or sqlite.
func New(ctx context.Context, db *sql.DB, driver string, o Options) (*Client, error) {
	if o.Queue == "" {
		o.Queue = "cmsjobs"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d, err := dialectOf(driver)
	if err != nil {
		return nil, err
	}
	t, err := readTable(ctx, db, d, o.Prefix+"jobs")
	if err != nil {
		return nil, fmt.Errorf("opening the queue: %w", err)
	}
	return &Client{db, t, o}, nil
}

// Enqueue puts a job into its queue. When the answer of the database is lost,
// the job may be there or not: a Job with an ID can be enqueued again.
func (c *Client) Enqueue(ctx context.Context, j Job) (Receipt, error) {
	e, err := c.prepare(j)
	if err != nil {
		return Receipt{}, err
	}
	var r Receipt
	err = repeated(ctx, func() error {
		tx, err := c.db.BeginTx(ctx, c.txOptions())
		if err != nil {
			return err
		}
		if r, err = c.insert(ctx, tx, e); err != nil {
			_ = tx.Rollback() // err says why
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		return Receipt{}, fmt.Errorf("enqueuing %s: %w", j.Type, err)
	}
	return r, nil
}

// txOptions is READ COMMITTED, which locks no gaps. SQLite has one level.
func (c *Client) txOptions() *sql.TxOptions {
	if c.table.dialect.name == "sqlite" {
		return nil
	}
	return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
}

// Tx is a transaction of the caller: *sql.Tx and *sqlx.Tx are some.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// EnqueueTx puts jobs into their queues within the caller's transaction, which
// must be on the queue's database. It returns their receipts in order. After an
// error the transaction must be rolled back.
func (c *Client) EnqueueTx(ctx context.Context, tx Tx, list ...Job) ([]Receipt, error) {
	receipts := make([]Receipt, 0, len(list))
	for _, j := range list {
		e, err := c.prepare(j)
		if err != nil {
			return nil, err
		}
		r, err := c.insert(ctx, tx, e)
		if err != nil {
			return nil, fmt.Errorf("enqueuing %s: %w", j.Type, err)
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

func (c *Client) prepare(j Job) (encoded, error) {
	if j.Queue == "" {
		j.Queue = c.options.Queue
	}
	if j.Priority != 0 && !c.table.extended {
		return encoded{}, fmt.Errorf("%w: the jobs table has no column for a priority: put the job on a queue that is "+
			"worked first", ErrInvalid)
	}
	return j.encode()
}

// insert writes one job, unless its ID or its unique key is in use.
func (c *Client) insert(ctx context.Context, tx Tx, e encoded) (Receipt, error) {
	names := e.names()
	if e.ID != "" {
		if ended, err := c.ended(ctx, tx, e.ID); err != nil || ended {
			return Receipt{ID: e.ID, Existing: true}, err
		}
	} else {
		e.ID = newUUID(c.options.Now())
	}
	for i, name := range names {
		existing, err := c.takeName(ctx, tx, name, e.ID)
		if err != nil {
			return Receipt{}, err
		}
		if existing == "" {
			continue
		}
		if i > 0 { // the first name was taken for nothing
			_, err = c.exec(ctx, tx, "DELETE FROM cmsjobs_unique WHERE name = ? AND job_id = 0", names[0])
		}
		return Receipt{ID: existing, Existing: true}, err
	}
	payload, err := e.row()
	if err != nil {
		return Receipt{}, err
	}
	id, err := c.insertRow(ctx, tx, e, payload)
	if err != nil {
		return Receipt{}, err
	}
	for _, name := range names {
		if _, err := c.exec(ctx, tx, "UPDATE cmsjobs_unique SET job_id = ? WHERE name = ?", id, name); err != nil {
			return Receipt{}, fmt.Errorf("noting a unique key: %w", err)
		}
	}
	return Receipt{ID: e.ID}, nil
}

func (c *Client) insertRow(ctx context.Context, tx Tx, e encoded, payload string) (id int64, err error) {
	statement, args := c.table.insert(e, payload)
	if c.table.dialect.name != "mysql" {
		found, err := c.one(ctx, tx, []any{&id}, statement+" RETURNING id", args...)
		if err == nil && !found {
			err = fmt.Errorf("%s took no row", c.table.name)
		}
		return id, err
	}
	r, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// exec runs one statement and says how many rows it concerned.
func (c *Client) exec(ctx context.Context, tx Tx, statement string, args ...any) (int64, error) {
	r, err := tx.ExecContext(ctx, c.table.bind(statement), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// one reads a single row; found is false when there is none.
func (c *Client) one(ctx context.Context, tx Tx, into []any, statement string, args ...any) (found bool, err error) {
	rows, err := tx.QueryContext(ctx, c.table.bind(statement), args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if found = rows.Next(); found {
		if err := rows.Scan(into...); err != nil {
			return true, err
		}
	}
	return found, rows.Err()
}
