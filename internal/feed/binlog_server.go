package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	binlog "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// binlogServer is what a server says of its binary log.
type binlogServer struct {
	version, account string
	format           string
	columns          map[string]int // of the jobs table
	end              binlog.Position
}

func (s *binlogServer) flavor() string {
	if strings.Contains(s.version, "MariaDB") {
		return binlog.MariaDBFlavor
	}
	return binlog.MySQLFlavor
}

// grant is the statement that gives an account the rights to read the binary log.
// Every MySQL and MariaDB understands it.
func (s *binlogServer) grant() string {
	at := max(0, strings.LastIndexByte(s.account, '@')) // a name may hold one
	name, host := s.account[:at], strings.TrimPrefix(s.account[at:], "@")
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	return "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO " + quote(name) + "@" + quote(host)
}

// examine asks the server where its log ends, and whether the jobs table is in it.
func (b *Binlog) examine(ctx context.Context) (*binlogServer, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	db, err := database.Connect(ctx, database.ConnectOptions{DSN: b.DSN, MaxConnections: 1})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	s := &binlogServer{}
	var on bool
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), CURRENT_USER(), @@global.log_bin, @@global.binlog_format").
		Scan(&s.version, &s.account, &on, &s.format); err != nil {
		return nil, database.Explain("asking the server for its binary log", err)
	}
	if !on {
		return nil, &UnavailableError{"the server writes no binary log", "set log_bin (and binlog_format=ROW) in the " +
			"server's configuration and restart it"}
	}
	if err := s.takesPart(ctx, db); err != nil {
		return nil, err
	}
	status := "SHOW BINARY LOG STATUS"
	if s.flavor() == binlog.MariaDBFlavor {
		status = "SHOW MASTER STATUS"
	}
	row := map[string]any{}
	err = db.QueryRowxContext(ctx, status).MapScan(row)
	if code(err) == syntaxError { // MySQL before 8.2
		err = db.QueryRowxContext(ctx, "SHOW MASTER STATUS").MapScan(row)
	}
	if err != nil {
		return nil, s.explain(err)
	}
	s.end.Name = fmt.Sprintf("%s", row["File"])
	position, err := strconv.ParseUint(fmt.Sprintf("%s", row["Position"]), 10, 32)
	if number, ok := row["Position"].(int64); ok {
		position, err = uint64(number), nil
	} else if number, ok := row["Position"].(uint64); ok {
		position, err = number, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading where the binary log ends: %w", err)
	}
	s.end.Pos = uint32(position)
	if s.columns, err = b.columnsOf(ctx, db); err != nil {
		return nil, database.Explain("reading the columns of the jobs table", err)
	}
	return s, b.logged(row)
}

// takesPart says whether a node of a cluster logs what other nodes write. A log without
// it would be relied on, and jobs that other nodes take would wait.
func (s *binlogServer) takesPart(ctx context.Context, db *sqlx.DB) error {
	var settings []struct {
		Name  string `db:"Variable_name"`
		Value string `db:"Value"`
	}
	if err := db.SelectContext(ctx, &settings, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', "+
		"'log_slave_updates')"); err != nil {
		return database.Explain("asking the server whether it is a node of a cluster", err)
	}
	is := map[string]string{}
	for _, v := range settings {
		is[strings.ToLower(v.Name)] = v.Value
	}
	if is["wsrep_on"] == "ON" && is["log_slave_updates"] == "OFF" {
		return &UnavailableError{"the node's binary log leaves out what other nodes of the cluster write",
			"set log_slave_updates=ON in the server's configuration and restart it"}
	}
	return nil
}

// logged says whether the server's filters let the jobs table into its log.
func (b *Binlog) logged(status map[string]any) error {
	list := func(column string) []string {
		return strings.FieldsFunc(fmt.Sprintf("%s", status[column]), func(r rune) bool { return r == ',' })
	}
	only, never := list("Binlog_Do_DB"), list("Binlog_Ignore_DB")
	has := func(names []string) bool {
		for _, name := range names {
			if strings.EqualFold(name, b.Schema) {
				return true
			}
		}
		return false
	}
	if len(only) > 0 && !has(only) || has(never) {
		return &UnavailableError{"the server leaves the database " + b.Schema + " out of its binary log",
			"change binlog_do_db or binlog_ignore_db in the server's configuration and restart it"}
	}
	return nil
}

// The codes of MySQL's errors that say what is missing.
const (
	accessDenied    = 1045
	tableDenied     = 1142
	privilegeDenied = 1227
	syntaxError     = 1064
)

// code is the number of an error of the server's, whichever driver reports it.
func code(err error) uint16 {
	var ours *mysql.MySQLError
	if errors.As(err, &ours) {
		return ours.Number
	}
	var theirs *binlog.MyError
	if errors.As(err, &theirs) {
		return theirs.Code
	}
	return 0
}

// explain says what to do about an error.
func (s *binlogServer) explain(err error) error {
	switch code(err) {
	case accessDenied, tableDenied, privilegeDenied:
		return &UnavailableError{"the account may not read the server's binary log", s.grant() +
			"; or name another account in feed.dsn"}
	}
	return fmt.Errorf("reading the binary log: %w", err)
}
