package cms_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestAdministratorsAreFoundAsTheyAre(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			boolean := "SMALLINT"
			if engine == jobstest.PostgreSQL {
				boolean = "BOOLEAN"
			}
			yes, no := "1", "0"
			if engine == jobstest.PostgreSQL {
				yes, no = "true", "false"
			}
			for _, statement := range []string{
				"CREATE TABLE b_users (id INT PRIMARY KEY, email VARCHAR(191), username VARCHAR(60), password " +
					"VARCHAR(120), super_user " + boolean + ", permissions TEXT)",
				"CREATE TABLE b_activations (user_id INT, completed " + boolean + ")",
				"CREATE TABLE b_roles (id INT, permissions TEXT)",
				"CREATE TABLE b_role_users (user_id INT, role_id INT)",
				"INSERT INTO b_users VALUES (1, 'root@x', 'root', '$2y$10$a', " + yes +
					", NULL), (2, 'ed@x', NULL, '$2y$10$b', " + no +
					`, '{"posts.edit":true,"core.system":false}'), (3, 'new@x', 'new', 'c', ` + yes + ", NULL)",
				"INSERT INTO b_activations VALUES (1, " + yes + "), (2, " + yes + "), (3, " + no + ")",
				`INSERT INTO b_roles VALUES (7, '{"cmsjobs.view":true}')`,
				"INSERT INTO b_role_users VALUES (2, 7)",
			} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			site := &cms.Site{DB: db.DB, Prefix: "b_"}
			for _, login := range []string{"root", "root@x"} {
				if u, err := site.UserByLogin(t.Context(), login); err != nil || u.Name != "root" || !u.SuperUser ||
					u.PasswordHash != "$2y$10$a" {
					t.Errorf("%s: %+v, %v", login, u, err)
				}
			}
			u, err := site.UserByLogin(t.Context(), "ed@x")
			if err != nil || u.Name != "ed@x" || u.SuperUser ||
				!slices.Equal(u.Permissions, []string{"cmsjobs.view", "posts.edit"}) {
				t.Errorf("%+v, %v", u, err)
			}
			if !u.SessionsInvalidatedAt.IsZero() {
				t.Errorf("a table without the column ends sessions at %v", u.SessionsInvalidatedAt)
			}
			// Newer cores sign accounts out everywhere, by the CMS's wall clock.
			for _, statement := range []string{"ALTER TABLE b_users ADD sessions_invalidated_at TIMESTAMP NULL",
				"UPDATE b_users SET sessions_invalidated_at = '2026-11-21 09:30:00' WHERE id = 2"} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			tokyo := &cms.Site{DB: db.DB, Prefix: "b_", FallbackZone: time.FixedZone("JST", 9*3600)}
			if u, err := tokyo.UserByLogin(t.Context(), "ed@x"); err != nil ||
				!u.SessionsInvalidatedAt.Equal(time.Date(2026, 11, 21, 0, 30, 0, 0, time.UTC)) {
				t.Errorf("signed out everywhere at %v, %v", u.SessionsInvalidatedAt, err)
			}
			if u, err := tokyo.UserByLogin(t.Context(), "root"); err != nil || !u.SessionsInvalidatedAt.IsZero() {
				t.Errorf("never signed out: %v, %v", u.SessionsInvalidatedAt, err)
			}
			for _, login := range []string{"new", "nobody", "", "' OR 1=1 --"} {
				if _, err := site.UserByLogin(t.Context(), login); !errors.Is(err, cms.ErrNoUser) {
					t.Errorf("%q: %v", login, err)
				}
			}
		})
	}
}

// A site without the table has no activated account; that is no fault of ours.
func TestWithoutActivationsNobodySignsIn(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	db.MustExec("CREATE TABLE users (id INT PRIMARY KEY, email VARCHAR(191), username VARCHAR(60), password " +
		"VARCHAR(120), super_user BOOLEAN, permissions TEXT)")
	db.MustExec("INSERT INTO users VALUES (1, 'root@x', 'root', 'a', 1, NULL)")
	site := &cms.Site{DB: db.DB}
	for _, login := range []string{"root", "nobody"} {
		if u, err := site.UserByLogin(t.Context(), login); !errors.Is(err, cms.ErrNoUser) {
			t.Errorf("%s: %+v, %v", login, u, err)
		}
	}
}

// A plain Laravel has other tables and columns: nobody signs in with its accounts,
// and that is no fault. An account without roles has its own flags.
func TestWithoutTheCMSsTablesOfRoles(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	db.MustExec("CREATE TABLE users (id INT PRIMARY KEY, name TEXT, email TEXT, password TEXT)")
	db.MustExec("INSERT INTO users VALUES (1, 'Root', 'root@x', 'a')")
	db.MustExec("CREATE TABLE activations (user_id INT, completed BOOLEAN)")
	site := &cms.Site{DB: db.DB}
	if u, err := site.UserByLogin(t.Context(), "root@x"); !errors.Is(err, cms.ErrNoUser) {
		t.Errorf("a plain Laravel: %+v, %v", u, err)
	}
	if missing, err := site.Accounts(t.Context()); err != nil || missing != "the table users has no column username" {
		t.Errorf("%q, %v", missing, err)
	}
	for _, statement := range []string{"ALTER TABLE users ADD username TEXT", "ALTER TABLE users ADD super_user BOOLEAN",
		"ALTER TABLE users ADD permissions TEXT", `UPDATE users SET super_user = 0, permissions = '{"posts.edit":true}'`,
		"INSERT INTO activations VALUES (1, 1)"} {
		db.MustExec(statement)
	}
	u, err := site.UserByLogin(t.Context(), "root@x")
	if err != nil || !slices.Equal(u.Permissions, []string{"posts.edit"}) {
		t.Errorf("without roles: %+v, %v", u, err)
	}
}
