package feed

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// publicationPrefix begins the name of each publication and slot of ours.
const publicationPrefix = "cmsjobs_"

// placeBytes is how much of a table's name is in that of its publication: PostgreSQL
// bounds a name by 63 bytes.
const placeBytes = 63 - len(publicationPrefix) - len(contentSuffix)

// contentSuffix ends the name of the publication of content.
const contentSuffix = "_content"

// columnLists is the version of PostgreSQL since which a publication may name columns.
const columnLists = 150000

// Publication is the publications that a database needs for Replication.
type Publication struct {
	// Make are the statements that make them, also where they are there, Drop those that remove them.
	Make, Drop []string
	// Without are tables that cannot be among them: they have no primary key, and
	// PostgreSQL would refuse every UPDATE of a published table without one.
	Without []string
}

// Publications finds out what is to be published: inserts of the jobs table (as it is
// written in SQL), and all changes of the tables of content that are there. Where the
// server can, only keys of rows are published, not what is in them.
func Publications(ctx context.Context, db *sqlx.DB, table string, content []string) (*Publication, error) {
	s := &Replication{Table: table, Content: content}
	var rows []struct {
		Name, Place, Key string
		Full             bool
	}
	if err := db.SelectContext(ctx, &rows, `SELECT w.name AS name, n.nspname || '_' || c.relname AS place,
		c.relreplident = 'f' AS full, COALESCE((SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
			FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
			WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary
				WHEN 'i' THEN i.indisreplident ELSE false END), '') AS key
		FROM unnest($1::text[]) WITH ORDINALITY AS w (name, n) JOIN pg_class c ON c.oid = to_regclass(w.name)
		JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' ORDER BY w.n`, s.names()); err != nil {
		return nil, database.Explain("looking for the tables of the change feed", err)
	}
	var version int
	if err := db.GetContext(ctx, &version, "SELECT current_setting('server_version_num')::int"); err != nil {
		return nil, database.Explain("asking for the server's version", err)
	}
	p := &Publication{}
	var jobs string
	var tables []string
	for _, r := range rows {
		place := r.Name
		if version >= columnLists && r.Key != "" && !r.Full {
			place += " (" + r.Key + ")"
		}
		switch {
		case r.Name == table:
			jobs = publicationPrefix + r.Place[:min(len(r.Place), placeBytes)]
			p.add(jobs, place+" WITH (publish = 'insert')")
		case r.Key == "" && !r.Full:
			p.Without = append(p.Without, r.Name)
		default:
			tables = append(tables, place)
		}
	}
	if jobs == "" {
		return nil, fmt.Errorf("the table %s is not there, or is no table that PostgreSQL replicates", table)
	}
	if len(tables) > 0 {
		p.add(jobs+contentSuffix, strings.Join(tables, ", "))
	}
	return p, nil
}

func (p *Publication) add(name, what string) {
	quoted := pgx.Identifier{name}.Sanitize()
	drop := "DROP PUBLICATION IF EXISTS " + quoted
	p.Drop = append(p.Drop, drop)
	p.Make = append(p.Make, drop, "CREATE PUBLICATION "+quoted+" FOR TABLE "+what)
}

// Prepared says what a person has made for a table's feed: the trigger for Notify, and
// a publication for Replication.
func Prepared(ctx context.Context, db *sqlx.DB, table string) (trigger, publication bool, err error) {
	err = db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_trigger WHERE tgname = $1 AND tgrelid = "+
		"to_regclass($2)), EXISTS (SELECT 1 FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = "+
		"t.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename WHERE c.oid = "+
		"to_regclass($2) AND starts_with(t.pubname::text, $3))", triggerName, table, publicationPrefix).
		Scan(&trigger, &publication)
	if err != nil {
		return false, false, database.Explain("looking for what the change feed needs", err)
	}
	return trigger, publication, nil
}
