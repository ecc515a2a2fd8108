package backup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// crossing is how the torture database comes from one kind of server to the other.
type crossing struct {
	from, to jobstest.Engine
	// more is what the torture database lacks.
	more []string
	// stated are the reasons that the backup itself shows, and what removes them.
	stated, removeStated []string
	// tried is a reason that only a rehearsal shows, and what removes all such.
	tried       string
	removeTried []string
}

var crossings = []crossing{
	{from: jobstest.MariaDB, to: jobstest.MySQL,
		stated: []string{"type uuid", "type inet6", "sequence invoice"},
		removeStated: []string{"ALTER TABLE `types` DROP u, DROP n6", "ALTER TABLE generated DROP no",
			"DROP SEQUENCE invoice"},
		tried:       "CREATE TABLE `generated`", // DEFAULT (UUID())
		removeTried: []string{"ALTER TABLE generated ALTER x DROP DEFAULT"}},
	{from: jobstest.MySQL, to: jobstest.MariaDB,
		more: []string{"CREATE TABLE padded (v VARCHAR(10) COLLATE utf8mb4_0900_ai_ci UNIQUE)",
			"INSERT INTO padded VALUES ('a'), ('a ')"},
		stated: []string{"WITH PARSER `ngram`", "functional index fl", "functional index fx",
			"functional index mv"},
		removeStated: []string{"ALTER TABLE ft DROP KEY ng", "DROP VIEW jt", "DROP TABLE functional"},
		tried:        "CREATE TABLE `exprdef`", // DEFAULT (UUID_TO_BIN())
		removeTried:  []string{"ALTER TABLE exprdef ALTER u DROP DEFAULT", "DROP TABLE genkey"}},
}

// The torture database as a whole is refused with the reasons, by what the backup says
// of itself, then by a rehearsal, while nothing is changed. Without what the other
// server does not know it is restored there, every row.
func TestTheTortureDatabaseComesToTheOtherServerOrIsRefused(t *testing.T) {
	jobstest.AsRoot(t)
	for _, c := range crossings {
		t.Run(string(c.from)+" to "+string(c.to), func(t *testing.T) {
			jobstest.NeedTorture(t, c.to)
			s := newSite(t, c.from)
			s.loadTorture(t)
			do := func(statements []string) {
				for _, statement := range statements {
					s.MustExec(statement)
				}
			}
			do(c.more)
			h := s.handler(t)
			h.c.Options.Verify = manifest.LevelNone
			other := jobstest.Open(t, c.to)
			other.MustExec("CREATE TABLE posts (id INT)")
			other.MustExec("INSERT INTO posts VALUES (1)")

			refusedBecause(t, s, h, other, c.stated...)
			do(c.removeStated)
			refusedBecause(t, s, h, other, c.tried)
			do(c.removeTried)

			_, b := s.backup(t, h)
			q := restore.Request{Backup: b, Database: true, IntoDSN: other.DSN}
			q.Confirm = h.Token(q)
			if done, err := h.Restore(t.Context(), q, nil); err != nil || len(done.Problems) > 0 {
				t.Fatalf("%q, %v", done.Problems, err)
			}
			if was, is := schemaObjects(t, s.Database), schemaObjects(t, other); !slices.Equal(was, is) {
				t.Errorf("restored:\n%s\nwas:\n%s", strings.Join(is, "\n"), strings.Join(was, "\n"))
			}
		})
	}
}

// refusedBecause makes a backup and sees plan and restore refuse it for the reasons.
func refusedBecause(t *testing.T, s *site, h *Handler, other *jobstest.Database, reasons ...string) {
	t.Helper()
	_, b := s.backup(t, h)
	q := restore.Request{Backup: b, Database: true, IntoDSN: other.DSN}
	plan, err := h.Plan(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range reasons {
		if !strings.Contains(strings.Join(plan.Refused, "\n"), reason) {
			t.Errorf("no %q in %q", reason, plan.Refused)
		}
	}
	q.Confirm = plan.Token
	unfit(t, h, q, other)
}

// unfit sees a restore refused and the database with the one table posts as it was.
func unfit(t *testing.T, h *Handler, q restore.Request, other *jobstest.Database) {
	t.Helper()
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, restore.ErrUnfit) ||
		!strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("the restore ended with: %v", err)
	}
	var rows int
	if err := other.Get(&rows, "SELECT COUNT(*) FROM posts"); err != nil || rows != 1 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
	if is := schemaObjects(t, other); !slices.Equal(is, []string{"BASE TABLE posts"}) {
		t.Errorf("there is now %q", is)
	}
}

// schemaObjects names everything in a database.
func schemaObjects(t *testing.T, db *jobstest.Database) []string {
	t.Helper()
	var all []string
	if err := db.Select(&all, `SELECT CONCAT(table_type, ' ', table_name) FROM information_schema.TABLES WHERE
		table_schema = DATABASE()
		UNION ALL SELECT CONCAT('trigger ', trigger_name) FROM information_schema.TRIGGERS WHERE trigger_schema =
		DATABASE()
		UNION ALL SELECT CONCAT(routine_type, ' ', routine_name) FROM information_schema.ROUTINES WHERE routine_schema =
		DATABASE()
		UNION ALL SELECT CONCAT('event ', event_name) FROM information_schema.EVENTS WHERE event_schema = DATABASE()`); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// Rows that the other server does not take show before anything is changed, too: here a
// chosen collation finds two texts equal.
func TestARowThatTheOtherServerDoesNotTakeIsRefusedBefore(t *testing.T) {
	jobstest.NeedVersion(t, jobstest.MySQL, 8, 0, "it has no collations of utf8mb4_0900")
	s := newSite(t, jobstest.MySQL)
	s.MustExec("CREATE TABLE words (v VARCHAR(10) COLLATE utf8mb4_0900_as_cs UNIQUE)")
	s.MustExec("INSERT INTO words VALUES ('a'), ('A')")
	h := s.handler(t)
	h.c.Options.Verify = manifest.LevelNone
	_, b := s.backup(t, h)
	other := jobstest.Open(t, jobstest.MariaDB)
	other.MustExec("CREATE TABLE posts (id INT)")
	other.MustExec("INSERT INTO posts VALUES (1)")
	q := restore.Request{Backup: b, Database: true, IntoDSN: other.DSN, Collations: map[string]string{
		"utf8mb4_0900_as_cs": "utf8mb4_unicode_ci"}}
	q.Confirm = h.Token(q)
	unfit(t, h, q, other)
	q.Collations = nil
	q.Confirm = h.Token(q)
	if done, err := h.Restore(t.Context(), q, nil); err != nil || len(done.Problems) > 0 {
		t.Errorf("by the nearest collation: %q, %v", done.Problems, err)
	}
}
