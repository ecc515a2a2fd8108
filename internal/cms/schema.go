package cms

import (
	"context"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Columns returns the types of a table's columns by their lower-case names, as
// the database spells them ("bigint unsigned", "timestamp"); empty when there
// is no such table.
func (s *Site) Columns(ctx context.Context, table string) (map[string]string, error) {
	query := database.Of(s.DB).Choose(database.Variants{
		SQLite: `SELECT name AS column_name, lower(type) AS column_type FROM pragma_table_info(?)`,
		MySQL: `SELECT COLUMN_NAME AS column_name, COLUMN_TYPE AS column_type FROM information_schema.columns
			WHERE table_schema = DATABASE() AND table_name = ?`,
		PostgreSQL: `SELECT column_name, data_type AS column_type FROM information_schema.columns WHERE table_schema =
			current_schema() AND table_name = ?`,
	})
	var rows []struct {
		Name string `db:"column_name"`
		Type string `db:"column_type"`
	}
	if err := s.DB.SelectContext(ctx, &rows, s.DB.Rebind(query), s.Table(table)); err != nil {
		return nil, fmt.Errorf("looking up the columns of %s: %w", s.Table(table), err)
	}
	columns := make(map[string]string, len(rows))
	for _, r := range rows {
		columns[strings.ToLower(r.Name)] = r.Type
	}
	return columns, nil
}

// HasTable says whether the CMS has a table.
func (s *Site) HasTable(ctx context.Context, table string) (bool, error) {
	columns, err := s.Columns(ctx, table)
	return len(columns) > 0, err
}

// quote writes an identifier as the database wants it. Names that are words of
// SQL ("key", "order") need it.
func (s *Site) quote(name string) string { return database.Of(s.DB).Ident(name) }

// TableNames lists the tables of the database, sorted.
func (s *Site) TableNames(ctx context.Context) ([]string, error) {
	query := database.Of(s.DB).Choose(database.Variants{
		SQLite: `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`,
		MySQL: `SELECT TABLE_NAME AS name FROM information_schema.tables WHERE table_schema = DATABASE()
			AND TABLE_TYPE = 'BASE TABLE' ORDER BY name`,
		PostgreSQL: `SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = current_schema()
			AND table_type = 'BASE TABLE' ORDER BY name`,
	})
	var names []string
	if err := s.DB.SelectContext(ctx, &names, query); err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	return names, nil
}
