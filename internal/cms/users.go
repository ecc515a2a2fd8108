package cms

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// User is one of the CMS's administrators.
type User struct {
	ID           string
	Name         string // user name, else e-mail
	PasswordHash string // bcrypt, as PHP writes it
	SuperUser    bool
	// Permissions are the flags that the account and its roles have, sorted.
	Permissions []string
	// SessionsInvalidatedAt is when the account was signed out everywhere: what
	// signed in before is over. Zero when never, or where the CMS is older than
	// the column.
	SessionsInvalidatedAt time.Time
}

// ErrNoUser says that no activated administrator has the login.
var ErrNoUser = errors.New("no such administrator")

// UserByLogin finds an activated administrator by user name, else by e-mail. A
// site without the CMS's tables of accounts has none.
func (s *Site) UserByLogin(ctx context.Context, login string) (User, error) {
	accounts, err := s.Accounts(ctx)
	if err != nil {
		return User{}, err
	}
	if accounts != "" || login == "" {
		return User{}, ErrNoUser
	}
	columns, err := s.Columns(ctx, "users")
	if err != nil {
		return User{}, err
	}
	_, ends := columns["sessions_invalidated_at"]
	for _, column := range []string{"username", "email"} {
		u, err := s.userBy(ctx, column, login, ends)
		if !errors.Is(err, ErrNoUser) {
			return u, err
		}
	}
	return User{}, ErrNoUser
}

// Accounts says why this site has no administrators that can sign in here, "" where
// it has some: a plain Laravel has "users" and none of the other tables and columns.
func (s *Site) Accounts(ctx context.Context) (missing string, err error) {
	for _, need := range []struct {
		table   string
		columns []string
	}{{"users", []string{"username", "email", "password", "super_user", "permissions"}},
		{"activations", []string{"user_id", "completed"}}} {
		columns, err := s.Columns(ctx, need.table)
		if err != nil {
			return "", err
		}
		if len(columns) == 0 {
			return "there is no table " + s.Table(need.table), nil
		}
		for _, c := range need.columns {
			if _, there := columns[c]; !there {
				return fmt.Sprintf("the table %s has no column %s", s.Table(need.table), c), nil
			}
		}
	}
	return "", nil
}

type userRow struct {
	ID            string         `db:"id"`
	Username      sql.NullString `db:"username"`
	Email         string         `db:"email"`
	Password      sql.NullString `db:"password"`
	SuperUser     bool           `db:"super_user"`
	Permissions   sql.NullString `db:"permissions"`
	InvalidatedAt wallTime       `db:"sessions_invalidated_at"`
}

// userBy finds an account by a column; ends says that the table has the column
// sessions_invalidated_at.
func (s *Site) userBy(ctx context.Context, column, login string, ends bool) (User, error) {
	invalidated := "NULL AS sessions_invalidated_at"
	if ends {
		invalidated = "sessions_invalidated_at"
	}
	query := fmt.Sprintf("SELECT id, username, email, password, super_user, permissions, %[5]s FROM %[1]s WHERE "+
		"%[2]s = ? AND EXISTS (SELECT 1 FROM %[3]s a WHERE a.user_id = %[1]s.id AND a.completed = %[4]s)",
		s.Table("users"), column, s.Table("activations"), database.Of(s.DB).True, invalidated)
	var row userRow
	err := s.DB.GetContext(ctx, &row, s.DB.Rebind(query), login)
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, ErrNoUser
	}
	if err != nil {
		return User{}, fmt.Errorf("looking up an administrator: %w", err)
	}
	u := User{ID: row.ID, Name: row.Username.String, PasswordHash: row.Password.String, SuperUser: row.SuperUser}
	if u.Name == "" {
		u.Name = row.Email
	}
	if u.SessionsInvalidatedAt, err = s.instant(ctx, row.InvalidatedAt); err != nil {
		return User{}, err
	}
	u.Permissions, err = s.permissionsOf(ctx, row)
	return u, err
}

// instant is a wall-clock time of the CMS; the zone is asked for only where
// there is one.
func (s *Site) instant(ctx context.Context, w wallTime) (time.Time, error) {
	if w.null {
		return time.Time{}, nil
	}
	zone, err := s.Zone(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return w.in(zone), nil
}

// permissionsOf are the flags of an account and of its roles, sorted.
func (s *Site) permissionsOf(ctx context.Context, row userRow) ([]string, error) {
	var roles []sql.NullString
	for _, table := range []string{"roles", "role_users"} {
		if there, err := s.HasTable(ctx, table); err != nil || !there {
			return permissions(row.Permissions.String), err // an account without roles has its own flags
		}
	}
	query := fmt.Sprintf("SELECT r.permissions FROM %s r JOIN %s ru ON ru.role_id = r.id WHERE ru.user_id = ?",
		s.Table("roles"), s.Table("role_users"))
	if err := s.DB.SelectContext(ctx, &roles, s.DB.Rebind(query), row.ID); err != nil {
		return nil, fmt.Errorf("looking up an administrator's roles: %w", err)
	}
	var names []string
	for _, flags := range append(roles, row.Permissions) {
		names = append(names, permissions(flags.String)...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// permissions reads {"flag": true, …}; flags that are not true do not count.
func permissions(text string) []string {
	var flags map[string]any
	if json.Unmarshal([]byte(text), &flags) != nil {
		return nil
	}
	var names []string
	for name, on := range flags {
		if on == true || on == 1.0 || on == "1" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
