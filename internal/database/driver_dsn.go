package database

import (
	"errors"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// DriverDSN writes one of the DSNs that Connect takes in the form that the
// database's Go driver itself reads.
func DriverDSN(dsn string) (string, error) {
	scheme, rest, isURL := strings.Cut(dsn, ":")
	switch {
	case isURL && (scheme == "mysql" || scheme == "mariadb"):
		c, err := mysqlURL(dsn)
		if err != nil {
			return "", err
		}
		return c.FormatDSN(), nil
	case isURL && (scheme == "postgres" || scheme == "postgresql" || scheme == "pgsql"):
		return "postgres:" + rest, nil
	case isURL && scheme == "sqlite":
		path, query, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "?")
		return "file:" + (&url.URL{Path: path}).EscapedPath() + withQuery(query), nil
	case isURL && scheme == "file":
		return dsn, nil
	}
	if _, err := mysql.ParseDSN(dsn); err != nil { // the driver's error may repeat the password
		return "", errors.New("the DSN's form is not known")
	}
	return dsn, nil
}

func withQuery(query string) string {
	if query == "" {
		return ""
	}
	return "?" + query
}
