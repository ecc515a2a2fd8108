package cms

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// User is one of the CMS's administrators.
type User struct {
	ID           string
	Name         string // user name, else e-mail
	PasswordHash string // bcrypt, as PHP writes it
	SuperUser    bool
	// Permissions are the flags that the account and its roles have, sorted.
	Permissions []string
}

// ErrNoUser says that no activated administrator has the login.
var ErrNoUser = errors.New("no such administrator")

// UserByLogin finds an activated administrator by user name, else by e-mail.
func (s *Site) UserByLogin(ctx context.Context, login string) (User, error) {
	there, err := s.HasTable(ctx, "users")
	if err != nil {
		return User{}, err
	}
	if !there || login == "" {
		return User{}, ErrNoUser
	}
	for _, column := range []string{"username", "email"} {
		u, err := s.userBy(ctx, column, login)
		if !errors.Is(err, ErrNoUser) {
			return u, err
		}
	}
	return User{}, ErrNoUser
}

func (s *Site) userBy(ctx context.Context, column, login string) (User, error) {
	var row struct {
		ID          string         `db:"id"`
		Username    sql.NullString `db:"username"`
		Email       string         `db:"email"`
		Password    sql.NullString `db:"password"`
		SuperUser   bool           `db:"super_user"`
		Permissions sql.NullString `db:"permissions"`
	}
	query := fmt.Sprintf("SELECT id, username, email, password, super_user, permissions FROM %s WHERE %s = ? AND EXISTS (SELECT 1 FROM %s a WHERE a.user_id = %[1]s.id AND a.completed = %[4]s)",
		s.Table("users"), column, s.Table("activations"), s.yes())
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
	var roles []sql.NullString
	query = fmt.Sprintf("SELECT r.permissions FROM %s r JOIN %s ru ON ru.role_id = r.id WHERE ru.user_id = ?", s.Table("roles"), s.Table("role_users"))
	if err := s.DB.SelectContext(ctx, &roles, s.DB.Rebind(query), row.ID); err != nil {
		return User{}, fmt.Errorf("looking up an administrator's roles: %w", err)
	}
	for _, flags := range append(roles, row.Permissions) {
		u.Permissions = append(u.Permissions, permissions(flags.String)...)
	}
	slices.Sort(u.Permissions)
	u.Permissions = slices.Compact(u.Permissions)
	return u, nil
}

// yes is how the database writes true in a boolean column.
func (s *Site) yes() string {
	if s.DB.DriverName() == "pgx" {
		return "true"
	}
	return "1"
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
	return names
}
