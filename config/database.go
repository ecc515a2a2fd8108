package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Database says where the CMS's tables and our own are.
type Database struct {
	DSN    DSN    `koanf:"dsn"`
	OwnDSN DSN    `koanf:"own_dsn"`
	Prefix string `koanf:"prefix"`
	// Claim forces a claim mode: skip or cas; auto probes.
	Claim string `koanf:"claim"`
	// Layout of the jobs table where we have to make one: stock or extended.
	Layout string `koanf:"layout"`
	// Connection is what failed_jobs calls this queue connection.
	Connection string `koanf:"connection"`
	MaxOpen    int    `koanf:"max_open"`
	Migrate    bool   `koanf:"migrate"`
}

func defaultDatabase() Database {
	return Database{Claim: "auto", Layout: "stock", Connection: "database", MaxOpen: 20, Migrate: true}
}

var prefixForm = regexp.MustCompile(`^[A-Za-z0-9_]{0,32}$`)

func (d Database) check(r *report) {
	for _, at := range []struct {
		path string
		dsn  DSN
	}{{"database/dsn", d.DSN}, {"database/own_dsn", d.OwnDSN}} {
		if at.dsn == "" {
			continue
		}
		if _, _, err := at.dsn.Open(); err != nil {
			r.add(at.path, "%v", err)
		}
	}
	if !prefixForm.MatchString(d.Prefix) {
		r.add("database/prefix", "%q is no table prefix: letters, digits and _ only, at most 32", d.Prefix)
	}
	r.oneOf("database/claim", d.Claim, "auto", "skip", "cas")
	r.oneOf("database/layout", d.Layout, "stock", "extended")
	r.between("database/max_open", d.MaxOpen, 2, 1000)
	if d.Connection == "" {
		r.add("database/connection", "it must have a name, usually database")
	}
}

// Open translates a DSN into what database/sql wants: the driver's name
// (mysql, pgx, sqlite) and its own form of data source name. It reads
// mysql://, mariadb://, postgres:// and sqlite: URLs, a path that ends in
// .sqlite or .db, and go-sql-driver's user:password@tcp(host:3306)/name.
func (d DSN) Open() (driver, source string, err error) {
	text := strings.TrimSpace(string(d))
	scheme, rest, _ := strings.Cut(text, ":")
	switch scheme {
	case "postgres", "postgresql", "pgsql":
		return "pgx", "postgres:" + rest, nil
	case "sqlite", "sqlite3", "file":
		return sqliteSource(strings.TrimPrefix(rest, "//"))
	case "mysql", "mariadb":
		if strings.HasPrefix(rest, "//") {
			return mysqlURL(text)
		}
	}
	if strings.HasSuffix(text, ".sqlite") || strings.HasSuffix(text, ".db") {
		return sqliteSource(text)
	}
	if user, after, ok := cutLast(text, "@"); ok && user != "" && strings.Contains(after, "/") {
		return "mysql", mysqlOptions(text), nil
	}
	return "", "", fmt.Errorf("it is no address of a database that we know: write mysql://user:password@host:3306/name, postgres://user:password@host/name or sqlite:/path/to/file.sqlite")
}

func sqliteSource(rest string) (string, string, error) {
	path, options, _ := strings.Cut(rest, "?")
	if path == "" {
		return "", "", fmt.Errorf("the address of a SQLite database needs a path: sqlite:/path/to/file.sqlite")
	}
	// What the queue rests on: write locks taken at BEGIN, waiting for them, a
	// journal that lets readers read, and commits that survive a power cut.
	for _, must := range []string{"_txlock=immediate", "_pragma=busy_timeout(10000)", "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)", "_pragma=foreign_keys(1)"} {
		name, _, _ := strings.Cut(must, "(")
		if !strings.Contains(options, name) {
			options = strings.TrimPrefix(options+"&"+must, "&")
		}
	}
	return "sqlite", "file:" + path + "?" + options, nil
}

func mysqlURL(text string) (string, string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", fmt.Errorf("it is not a URL; special signs in user and password are written as %%40 for @, %%2F for / and so on")
	}
	host := u.Host
	if host == "" {
		host = "127.0.0.1"
	}
	if u.Port() == "" {
		host += ":3306"
	}
	options := u.Query()
	address := "tcp(" + host + ")"
	if socket := options.Get("socket"); socket != "" {
		address = "unix(" + socket + ")"
		options.Del("socket")
	}
	password, _ := u.User.Password()
	source := fmt.Sprintf("%s:%s@%s/%s", u.User.Username(), password, address, strings.TrimPrefix(u.Path, "/"))
	if len(options) > 0 {
		source += "?" + options.Encode()
	}
	return "mysql", mysqlOptions(source), nil
}

// mysqlOptions adds what the queue rests on where the source does not say it:
// matched instead of changed rows, and times as times.
func mysqlOptions(source string) string {
	for _, option := range []string{"parseTime=true", "clientFoundRows=true"} {
		name, _, _ := strings.Cut(option, "=")
		if strings.Contains(source, name+"=") {
			continue
		}
		glue := "?"
		if strings.Contains(source[strings.LastIndex(source, "/"):], "?") {
			glue = "&"
		}
		source += glue + option
	}
	return source
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
