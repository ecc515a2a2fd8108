package restore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// postgresPlace is a database of PostgreSQL: psql restores it in one transaction, in
// which a table is made that says so.
type postgresPlace struct {
	r      *Restorer
	e      *entry
	loader *dump.PostgresLoader // until it is closed
	last   []byte               // statements of the same transaction
}

// application is the name of psql's connection.
func (p *postgresPlace) application() string { return "cmsjobs restore " + p.e.ID }

func (p *postgresPlace) load(ctx context.Context, _ Request) (_ dump.PieceLoader, err error) {
	if err := p.with(ctx, func(c *pgx.Conn) (err error) {
		p.last, err = p.lastPiece(ctx, c)
		return err
	}); err != nil {
		return nil, err
	}
	p.loader, err = dump.NewPostgresLoader(ctx, p.r.config.DSN, p.application())
	return p.loader, err
}

// lastPiece makes the mark. The dump replaces the journal, where that is in the same
// database: then the same transaction writes it again.
func (p *postgresPlace) lastPiece(ctx context.Context, c *pgx.Conn) ([]byte, error) {
	var schema string
	var journal bool
	if err := c.QueryRow(ctx, "SELECT current_schema(), to_regclass('cmsjobs_backup_restores') IS NOT NULL").Scan(
		&schema, &journal); err != nil {
		return nil, fmt.Errorf("looking at the database to restore into: %w", err)
	}
	in := pgx.Identifier{schema}.Sanitize() + "."
	piece := "\nCREATE TABLE " + in + p.e.detail.Set.Mark() + " (id INTEGER);\n"
	if journal {
		if err := c.QueryRow(ctx, "SELECT COUNT(*) > 0 FROM cmsjobs_backup_restores WHERE id = $1", p.e.ID).Scan(
			&journal); err != nil {
			return nil, err
		}
	}
	if journal {
		piece += fmt.Sprintf("INSERT INTO %scmsjobs_backup_restores (id, backup_id, host, phase, started_at, detail) "+
			"VALUES (%s, %s, %s, %s, %d, %s) ON CONFLICT (id) DO UPDATE SET phase = EXCLUDED.phase;\n", in,
			literal(p.e.ID), literal(p.e.Backup), literal(p.e.Host), literal(string(exchanged)), p.e.Started,
			literal(p.e.Text))
	}
	return []byte(piece), nil
}

// literal is a string for a session with standard_conforming_strings, as dumps set it.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (p *postgresPlace) ready(context.Context, *manifest.Manifest) ([]string, error) { return nil, nil }

func (p *postgresPlace) exchange(context.Context) error {
	loader := p.loader
	p.loader = nil
	return errors.Join(loader.Load(dump.Extra, "", p.last), loader.Close())
}

func (p *postgresPlace) abort() {
	if p.loader != nil {
		_ = p.loader.Abort() // the server rolls it back
		p.loader = nil
	}
}

func (p *postgresPlace) with(ctx context.Context, do func(*pgx.Conn) error) error {
	c, err := database.ConnectPostgres(ctx, p.r.config.DSN)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close(context.WithoutCancel(ctx)))
}

func (p *postgresPlace) late() bool { return false }

func (p *postgresPlace) stop(ctx context.Context) error {
	return p.with(ctx, func(c *pgx.Conn) error {
		for {
			var running int
			if err := c.QueryRow(ctx, "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "+
				"application_name = $1", p.application()).Scan(&running); err != nil || running == 0 {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(stopPoll):
			}
		}
	})
}

const stopPoll = 50 * time.Millisecond

func (p *postgresPlace) exchanged(ctx context.Context) (is bool, err error) {
	err = p.with(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", p.e.detail.Set.Mark()).Scan(&is)
	})
	return is, err
}

func (p *postgresPlace) finish(ctx context.Context) ([]string, error) { return nil, p.undo(ctx) }

func (p *postgresPlace) undo(ctx context.Context) error {
	return p.with(ctx, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, "DROP TABLE IF EXISTS "+p.e.detail.Set.Mark())
		return err
	})
}
