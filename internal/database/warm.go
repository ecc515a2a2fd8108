package database

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// warmTime bounds Warm.
const warmTime = 10 * time.Second

// Warm opens so many connections at the same time and leaves them to the pool: who
// comes next then waits for none. Connections that the server refuses, or that are not
// there in time, are not missed: they are opened when they are needed.
func Warm(ctx context.Context, db *sqlx.DB, n int) {
	ctx, done := context.WithTimeout(ctx, warmTime)
	defer done()
	if limit := db.Stats().MaxOpenConnections; limit > 0 {
		n = min(n, limit)
	}
	conns := make([]*sql.Conn, n)
	var all sync.WaitGroup
	for i := range conns {
		all.Go(func() { conns[i], _ = db.Conn(ctx) })
	}
	all.Wait() // else one would be handed around
	for _, c := range conns {
		if c != nil {
			_ = c.Close()
		}
	}
}
