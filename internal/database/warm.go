package database

import (
	"context"
	"database/sql"
	"sync"

	"github.com/jmoiron/sqlx"
)

// Warm opens so many connections at the same time and leaves them to the pool: who
// comes next then waits for none. Connections that the server refuses, or that are not
// there when ctx ends, are not missed: they are opened when they are needed.
func Warm(ctx context.Context, db *sqlx.DB, n int) {
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
