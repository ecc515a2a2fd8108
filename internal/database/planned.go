package database

import (
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// maxPlans bounds what PostgreSQL keeps for one connection.
const maxPlans = 32

// smallTable is up to how many bytes a table is read as fast without an index.
const smallTable = 256 << 10

// Plans lets PostgreSQL keep statements about a table, with their plans, for each connection:
// planning a statement of several parts takes it longer than doing it. It is for texts that
// are always the same, and plans that do not depend on the values.
//
// A plan that was made while the table was small reads all of its rows when many have come,
// until the server counts them again, in a minute or never. So each answer must say how
// large the table is: when it has doubled, others are made. Plans is safe for concurrent
// use.
type Plans struct {
	mu      sync.Mutex
	refused bool
	size    int64 // of the table, in bytes, when this version began
	version int
}

// Of is a statement with its arguments as PostgreSQL keeps it. ok is false where that was
// refused: it goes as it is.
func (p *Plans) Of(statement string, args []any) (kept string, with []any, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused {
		return statement, args, false
	}
	return fmt.Sprintf("%s /* plan %d */", statement, p.version), append([]any{pgx.QueryExecModeCacheStatement},
		args...), true
}

// Saw notes how many bytes the table has. One of which a row was just read has none only where
// its parts have them: then nothing is kept.
func (p *Plans) Saw(size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = p.refused || size == 0
	if size > 2*max(p.size, smallTable) {
		p.size, p.version = size, p.version+1
	}
}

// Refuse says that statements cannot be kept.
func (p *Plans) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = true
}

// Unplanned says that PostgreSQL, or a pooler before it that gives each transaction
// another connection, has no such statement, has one that it should not have, or has
// one of a table that was changed since. Nothing was done: it may go without being kept.
func Unplanned(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "26000", "42P05", "0A000": // not there; there already; its result would be another
		return true
	}
	return false
}
