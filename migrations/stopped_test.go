package migrations_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// MySQL and MariaDB commit each CREATE TABLE by itself: a process that dies, or a second
// one that starts at the same moment, leaves tables that no version stands for.
func TestMakingTablesGoesOnWhereItStopped(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		db := jobstest.Migrated(t, engine)
		for _, statement := range []string{"DELETE FROM " + migrations.Table + " WHERE version_id >= 40",
			"DROP TABLE cmsjobs_mail_attempts", "DROP TABLE cmsjobs_backups"} {
			db.MustExec(statement)
		}
		if err := migrations.Up(t.Context(), db.DB); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"cmsjobs_mail_attempts", "cmsjobs_backups"} {
			var rows int
			if err := db.Get(&rows, "SELECT COUNT(*) FROM "+table); err != nil {
				t.Errorf("%s was not made: %v", table, err)
			}
		}
		var versions, distinct int
		if err := db.QueryRow("SELECT COUNT(*), COUNT(DISTINCT version_id) FROM "+migrations.Table).
			Scan(&versions, &distinct); err != nil || versions != distinct {
			t.Errorf("%d versions are noted, %d of them different: %v", versions, distinct, err)
		}
		db.MustExec("DROP TABLE cmsjobs_mail") // removing them was stopped
		if err := migrations.Down(t.Context(), db.DB); err != nil {
			t.Error(err)
		}
	})
}

// Each statement of MySQL's files may run again, those that are written later too.
func TestEachStatementForMySQLMayRunAgain(t *testing.T) {
	files, err := filepath.Glob("mysql/*.sql")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	statement := regexp.MustCompile(`(?m)^(CREATE|DROP|ALTER|INSERT|UPDATE|RENAME)\b.*`)
	again := regexp.MustCompile(`^(CREATE TABLE IF NOT EXISTS |DROP TABLE IF EXISTS |` +
		`ALTER TABLE \w+ DEFAULT CHARACTER SET )`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range statement.FindAllString(string(text), -1) {
			if !again.MatchString(line) {
				t.Errorf("%s: %q fails where it ran before", file, line)
			}
		}
	}
}

// See doc.go: what is not marked takes 4 MiB a line.
func TestStatementsOfSeveralLinesAreMarked(t *testing.T) {
	files, err := filepath.Glob("*/*.sql")
	if err != nil || len(files) < 30 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		marked := false
		for line := range strings.Lines(string(text)) {
			switch line = strings.TrimSpace(line); {
			case line == "-- +goose StatementBegin":
				marked = true
			case line == "-- +goose StatementEnd":
				marked = false
			case !marked && line != "" && !strings.HasPrefix(line, "--") && !strings.HasSuffix(line, ";"):
				t.Errorf("%s: %q needs StatementBegin and StatementEnd", file, line)
			}
		}
	}
}
