package migrations

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed mysql/*.sql sqlite/*.sql postgres/*.sql
var files embed.FS

// Table is where goose notes which migrations ran.
const Table = "cmsjobs_migrations"

// Provider returns goose's view of our migrations for an open database.
func Provider(db *sqlx.DB) (*goose.Provider, error) {
	var dialect database.Dialect
	var folder string
	switch driver := db.DriverName(); driver {
	case "mysql":
		dialect, folder = database.DialectMySQL, "mysql"
	case "sqlite":
		dialect, folder = database.DialectSQLite3, "sqlite"
	case "pgx":
		dialect, folder = database.DialectPostgres, "postgres"
	default:
		return nil, fmt.Errorf("no migrations for the driver %q", driver)
	}
	store, err := database.NewStore(dialect, Table)
	if err != nil {
		return nil, err
	}
	sub, err := fs.Sub(files, folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider("", db.DB, sub, goose.WithStore(store), goose.WithAllowOutofOrder(true))
}

// Up makes what is missing. Running it twice is harmless.
func Up(ctx context.Context, db *sqlx.DB) error {
	p, err := Provider(db)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("making our tables: %w", err)
	}
	return nil
}

// Down removes all of our tables, with what is in them.
func Down(ctx context.Context, db *sqlx.DB) error {
	p, err := Provider(db)
	if err != nil {
		return err
	}
	if _, err := p.DownTo(ctx, 0); err != nil {
		return fmt.Errorf("removing our tables: %w", err)
	}
	if _, err := db.ExecContext(ctx, "DROP TABLE "+Table); err != nil {
		return fmt.Errorf("removing the table %s: %w", Table, err)
	}
	return nil
}
