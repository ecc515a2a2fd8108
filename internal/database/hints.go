package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// Explain adds to an error of the database what a person can do about it.
func Explain(op string, err error) error {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	hint := ""
	switch {
	case errors.As(err, &my):
		hint = map[uint16]string{
			1045: "the server refuses the user or the password: check them, that the user may log in from this host, " +
				"and whether the account requires TLS (?tls=true in the DSN)",
			3159: "the server wants TLS: add ?tls=true to the DSN, or ?tls=skip-verify where its certificate " +
				"is its own",
			1862: "the user's password has expired: ALTER USER … IDENTIFIED BY a new one, or PASSWORD EXPIRE NEVER",
			1820: "the user's password has expired: ALTER USER … IDENTIFIED BY a new one, or PASSWORD EXPIRE NEVER",
			3118: "the user's account is locked: ALTER USER … ACCOUNT UNLOCK",
			4151: "the user's account is locked: ALTER USER … ACCOUNT UNLOCK",
			3032: "the server is in offline mode: SET GLOBAL offline_mode = OFF",
			1226: "the user has no connection left: raise MAX_USER_CONNECTIONS or lower database.max_open",
			1698: "the server refuses the user: it may log in through the UNIX socket only",
			1044: "the user has no right to this database: GRANT SELECT, INSERT, UPDATE, DELETE on it",
			1049: "there is no such database on this server: check its name",
			1142: "the user lacks a right on this table: GRANT it",
			1040: "the server has no connection left: raise max_connections or lower the number of workers",
		}[my.Number]
	case errors.As(err, &pg):
		hint = map[string]string{
			"28P01": "the server refuses the user or the password: check them",
			"28000": "the server refuses the user from this host: see pg_hba.conf",
			"3D000": "there is no such database on this server: check its name",
			"42501": "the user lacks a right on this table: GRANT it",
			"53300": "the server has no connection left: raise max_connections or lower the number of workers",
		}[pg.Code]
	default:
		hint = explainNetwork(err)
	}
	if hint == "" {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %s: %w", op, hint, err)
}

func explainNetwork(err error) string {
	var dns *net.DNSError
	var network net.Error
	switch text := err.Error(); {
	case errors.Is(err, ErrGreeting):
		return "what answers there is no database server, or a broken one: check host and port"
	case errors.As(err, &dns):
		return "the host's name is not known: check it"
	case strings.Contains(text, "connection refused"):
		return "nobody listens there: is the server running, and are host and port right?"
	case strings.Contains(text, "no such file or directory"):
		return "there is no such file or socket: check the path"
	case strings.Contains(text, "unable to open database file"):
		return "the file cannot be opened: check the path and its folder's rights"
	case strings.Contains(text, "not a database"):
		return "the file is no SQLite database: check the path"
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "the server does not answer: is a firewall between?"
	}
	return ""
}
