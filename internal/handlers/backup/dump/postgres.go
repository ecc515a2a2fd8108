package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Postgres dumps a PostgreSQL database with pg_dump, in the snapshot in which
// rows are counted. Its pieces name no tables.
func Postgres(ctx context.Context, dsn string, o Options, sink Sink) (_ Summary, err error) {
	tool, err := installed("pg_dump")
	if err != nil {
		return Summary{}, err
	}
	conn, err := database.ConnectPostgres(ctx, dsn)
	if err != nil {
		return Summary{}, fmt.Errorf("opening the database for the dump: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return Summary{}, fmt.Errorf("opening the snapshot: %w", err)
	}
	var snapshot string
	if err := tx.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
		return Summary{}, fmt.Errorf("opening the snapshot: %w", err)
	}
	summary, err := postgresSummary(ctx, tx, o)
	if err != nil {
		return Summary{}, err
	}
	args := []string{"--format=plain", "--no-owner", "--no-privileges", "--clean", "--if-exists", "--encoding=UTF8",
		"--snapshot=" + snapshot}
	for _, t := range summary.Tables {
		if len(o.Tables) > 0 {
			args = append(args, "--table="+postgresPattern(t.Name))
		}
		if t.Empty {
			args = append(args, "--exclude-table-data="+postgresPattern(t.Name))
		}
	}
	for _, name := range summary.excluded {
		args = append(args, "--exclude-table="+postgresPattern(name))
	}
	out := newWriter(ctx, o, sink)
	out.start(Main, "")
	out.rows = summary.Rows
	err = stream(ctx, out, postgresEnv(conn.Config()), tool, args...)
	if err = errors.Join(err, out.close()); err != nil {
		return Summary{}, fmt.Errorf("dumping the database %s with pg_dump: %w", summary.Database, err)
	}
	summary.Bytes = out.bytes
	return summary.Summary, nil
}

type postgresTables struct {
	Summary
	excluded []string
}

// postgresSummary counts and sums up the tables of the current schema.
func postgresSummary(ctx context.Context, tx pgx.Tx, o Options) (s postgresTables, err error) {
	err = tx.QueryRow(ctx, "SELECT version(), current_database(), pg_encoding_to_char(encoding), datcollate, now() "+
		"FROM pg_database WHERE datname = current_database()").
		Scan(&s.Server, &s.Database, &s.Charset, &s.Collation, &s.Snapshot)
	if err != nil {
		return s, fmt.Errorf("looking at the database: %w", err)
	}
	rows, err := tx.Query(ctx, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
	if err != nil {
		return s, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return s, fmt.Errorf("listing the tables: %w", err)
	}
	all := catalog{}
	for _, name := range names {
		all.tables = append(all.tables, tableInfo{name: name})
		if o.Exclude != nil && o.Exclude(name) {
			s.excluded = append(s.excluded, name)
		}
	}
	for _, t := range all.only(o).tables {
		table := Table{Name: t.name, Engine: "heap"}
		if table.Empty = o.Empty != nil && o.Empty(t.name); !table.Empty {
			query := "SELECT count(*), COALESCE(sum(hashtextextended(t::text, 0)), 0)::text FROM " + pgx.Identifier{
				t.name}.Sanitize() + " t"
			if err := tx.QueryRow(ctx, query).Scan(&table.Rows, &table.Checksum); err != nil {
				return s, fmt.Errorf("counting the rows of %s: %w", t.name, err)
			}
		}
		s.Rows += table.Rows
		s.Tables = append(s.Tables, table)
	}
	return s, nil
}

// PostgresSummary describes a database as Postgres does, without dumping it.
func PostgresSummary(ctx context.Context, dsn string, o Options) (Summary, error) {
	conn, err := database.ConnectPostgres(ctx, dsn)
	if err != nil {
		return Summary{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return Summary{}, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	s, err := postgresSummary(ctx, tx, o)
	return s.Summary, err
}

// postgresPattern names exactly one table to pg_dump, which reads patterns.
func postgresPattern(name string) string { return pgx.Identifier{name}.Sanitize() }

// postgresEnv hands an account to the clients by their environment, which
// other users cannot read.
func postgresEnv(c *pgx.ConnConfig) []string {
	mode := "disable"
	if c.TLSConfig != nil {
		mode = "require"
		if !c.TLSConfig.InsecureSkipVerify {
			mode = "verify-full"
		}
	}
	return []string{"PGHOST=" + c.Host, "PGPORT=" + strconv.Itoa(int(c.Port)), "PGUSER=" + c.User, "PGPASSWORD=" +
		c.Password,
		"PGDATABASE=" + c.Database, "PGSSLMODE=" + mode, "PGCLIENTENCODING=UTF8"}
}

// PostgresLoader restores a PostgreSQL dump with psql, in one transaction. The
// transaction is the script's own: psql --single-transaction commits what it got when
// its input ends early, as it does when this process is killed.
type PostgresLoader struct {
	stdin     io.WriteCloser
	cmd       *exec.Cmd
	complaint bytes.Buffer
	said      bytes.Buffer
}

// committed is what psql says once the transaction is committed.
const committed = "cmsjobs: committed"

// NewPostgresLoader starts psql on the database that the DSN names. application is its
// name at the server; "" is psql's own.
func NewPostgresLoader(ctx context.Context, dsn, application string) (*PostgresLoader, error) {
	tool, err := installed("psql")
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	l := &PostgresLoader{}
	l.cmd = exec.CommandContext(ctx, tool, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output="+os.DevNull)
	l.cmd.Env = append(l.cmd.Environ(), postgresEnv(config)...)
	if application != "" {
		l.cmd.Env = append(l.cmd.Env, "PGAPPNAME="+application)
	}
	l.cmd.Stderr = &limited{&l.complaint, 4096}
	l.cmd.Stdout = &limited{&l.said, 4096}
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = io.WriteString(l.stdin, "BEGIN;\n")
	return l, err
}

// Load restores one piece.
func (l *PostgresLoader) Load(_ Part, _ string, piece []byte) error {
	_, err := l.stdin.Write(piece)
	return err
}

// Abort ends without keeping anything.
func (l *PostgresLoader) Abort() error {
	err := l.stdin.Close()
	_ = l.cmd.Wait() // whatever it says: nothing was committed
	return err
}

// Close commits and waits until everything is restored, or says why it is not.
func (l *PostgresLoader) Close() error {
	_, sent := io.WriteString(l.stdin, "\nCOMMIT;\n\\echo "+committed+"\n")
	closed := l.stdin.Close()
	err := errors.Join(l.cmd.Wait(), sent, closed)
	if err == nil && !strings.Contains(l.said.String(), committed) {
		err = ErrTorn
	}
	if err != nil {
		return fmt.Errorf("restoring with psql: %w: %s", err, strings.TrimSpace(l.complaint.String()))
	}
	return nil
}
