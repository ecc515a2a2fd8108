package setup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Engine is the kind of the CMS's database.
type Engine string

// The engines; MariaDB counts as MySQL.
const (
	MySQL      Engine = "mysql"
	PostgreSQL Engine = "postgres"
	SQLite     Engine = "sqlite"
)

// Sequence numbers the rows of a table of PostgreSQL.
type Sequence struct{ Table, Name string }

// journalByte of a SQLite file's header says how it is written: 1 is a journal that is
// gone after each transaction, 2 a write-ahead log.
const journalByte, writeAhead = 18, 2

// WritesAhead says whether a SQLite file has a write-ahead log. It only reads the file's
// header, because opening the database may change it.
func WritesAhead(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var header [journalByte + 1]byte
	_, err = io.ReadFull(f, header[:])
	if errors.Is(err, io.EOF) { // an empty file is an empty database
		return false, nil
	}
	return header[journalByte] == writeAhead, err
}

// missingPrograms says which programs the first backup needs that are not here; nil
// where it can be made.
func (s Site) missingPrograms(texts Texts) error {
	if len(s.Missing) == 0 {
		return nil
	}
	return texts.Errorf("backups of PostgreSQL need %s, which this host does not have: install the "+
		"PostgreSQL client in "+
		"the server's version, then run setup again", strings.Join(s.Missing, ", "))
}

// noteEngine says what the site's database does not have.
func (p *Plan) noteEngine(s Site) {
	switch s.Engine {
	case PostgreSQL:
		p.say("on PostgreSQL a restore brings back the moment of a backup, none between two; stop " +
			"the service before one, " +
			"as a restore replaces our tables, too.")
		p.say("jobs of other programs are noticed within seconds; at once with a trigger on %s: %s "+
			"--config %s migrate feed",
			s.JobsTable, p.Program, p.Config)
		if p.Choice.Way == Compose {
			p.say("the image has no pg_dump and no psql: in the container no backup is made. Choose " +
				"another --way for backups.")
		}
	case SQLite:
		p.say("on SQLite a restore brings back the moment of a backup, none between two; all " +
			"workers run on this host, and " +
			"one program writes at a time. There are no database accounts, so there is nothing to grant.")
		if s.RollbackJournal {
			p.say("%s gets a write-ahead log (journal_mode WAL), so that the site is read while the "+
				"service writes; setup "+
				"--remove takes it away again.", s.DatabaseFile)
		}
	}
}

// rights are what the service changes in the CMS's tables (docs/operating.md, Least rights).
var rights = []struct{ table, verbs string }{
	{"failed_jobs", "INSERT, UPDATE, DELETE"}, {"posts", "UPDATE (status, updated_at)"},
	{"pages", "UPDATE (status, updated_at)"}, {"media_files", "UPDATE (options, updated_at)"},
	{"audit_histories", "DELETE"}, {"admin_notifications", "INSERT, DELETE"}, {"cache", "DELETE"},
	{"cache_locks", "DELETE"},
}

// Grants are the statements for an account with the least rights; "" for SQLite, which
// has no accounts.
func (s Site) Grants() string {
	var lines []string
	switch s.Engine {
	case MySQL:
		lines = s.grantsOfMySQL()
	case PostgreSQL:
		lines = s.grantsOfPostgres()
	default:
		return ""
	}
	return "  " + strings.Join(lines, "\n  ")
}

// written are the tables that the service writes into, with what it does there.
func (s Site) written(each func(table, verbs string)) {
	each(s.JobsTable, "INSERT, UPDATE, DELETE")
	for _, r := range rights {
		if slices.Contains(s.Tables, s.Prefix+r.table) {
			each(s.Prefix+r.table, r.verbs)
		}
	}
	for _, t := range s.Tables {
		if strings.HasPrefix(t, "cmsjobs_") {
			each(t, "INSERT, UPDATE, DELETE")
		}
	}
}

func (s Site) grantsOfMySQL() []string {
	database := "`" + strings.ReplaceAll(s.Database, "`", "``") + "`"
	lines := []string{"CREATE USER 'cmsjobs'@'localhost' IDENTIFIED BY 'change-me';",
		"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON " + database + ".* TO 'cmsjobs'@'localhost';"}
	s.written(func(table, verbs string) {
		lines = append(lines, fmt.Sprintf("GRANT %s ON %s.`%s` TO 'cmsjobs'@'localhost';", verbs, database, table))
	})
	return lines
}

func (s Site) grantsOfPostgres() []string {
	name := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	schema := name(s.Schema)
	lines := []string{"CREATE ROLE cmsjobs LOGIN PASSWORD 'change-me';",
		"GRANT USAGE ON SCHEMA " + schema + " TO cmsjobs;"}
	// Backups read everything, also what the CMS makes later.
	for _, kind := range []string{"TABLES", "SEQUENCES"} {
		lines = append(lines, fmt.Sprintf("GRANT SELECT ON ALL %s IN SCHEMA %s TO cmsjobs;", kind, schema),
			fmt.Sprintf("ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA %s GRANT SELECT ON %s TO cmsjobs;",
				name(s.DatabaseAccount), schema, kind))
	}
	s.written(func(table, verbs string) {
		lines = append(lines, fmt.Sprintf("GRANT %s ON %s.%s TO cmsjobs;", verbs, schema, name(table)))
		for _, q := range s.Sequences {
			if q.Table == table && strings.Contains(verbs, "INSERT") {
				lines = append(lines, fmt.Sprintf("GRANT USAGE ON SEQUENCE %s.%s TO cmsjobs;", schema,
					name(q.Name)))
			}
		}
	})
	return lines
}
