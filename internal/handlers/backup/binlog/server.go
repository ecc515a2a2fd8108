package binlog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// Server is what a server says of its binary log.
type Server struct {
	Version, Account string
	MariaDB          bool
	Name             string // dump.LogPosition's Server
	// Format is ROW, MIXED or STATEMENT.
	Format string
	// RowImage is FULL where each event has all columns.
	RowImage string
	// Keeps is how long the server keeps a file; 0 is for ever.
	Keeps time.Duration
	// Files are the server's files, oldest first, with their sizes.
	Files []LogFile
}

// LogFile is a file of the server's log.
type LogFile struct {
	Name string
	Size int64
}

// MissingError says what a person must change before the log can be archived.
type MissingError struct {
	What string // what is missing
	Fix  string
	// Right is true where the log is there, and the account may not read it.
	Right bool
}

func (e *MissingError) Error() string { return e.What }

// Look asks the server that the DSN names (go-sql-driver's form). A *MissingError says
// why its log cannot be archived.
func Look(ctx context.Context, dsn string) (Server, error) {
	pool, _, err := dump.Connect(dsn)
	if err != nil {
		return Server{}, err
	}
	defer pool.Close()
	var s Server
	var on bool
	err = pool.QueryRowContext(ctx, "SELECT VERSION(), CURRENT_USER(), @@global.log_bin, @@global.binlog_format, "+
		"@@global.binlog_row_image").Scan(&s.Version, &s.Account, &on, &s.Format, &s.RowImage)
	if err != nil {
		return s, fmt.Errorf("asking the server for its binary log: %w", err)
	}
	s.MariaDB = dump.IsMariaDB(s.Version)
	if !on {
		return s, &MissingError{What: "the server writes no binary log", Fix: "set log_bin and binlog_format=ROW in " +
			"the server's configuration and restart it"}
	}
	if s.Name, err = dump.ServerOfLog(ctx, pool, s.MariaDB); err != nil {
		return s, err
	}
	if err := s.keeps(ctx, pool); err != nil {
		return s, err
	}
	return s, s.files(ctx, pool)
}

func (s *Server) keeps(ctx context.Context, pool *sql.DB) error {
	query := "SELECT @@global.binlog_expire_logs_seconds"
	if !s.MariaDB {
		query = "SELECT @@global.binlog_expire_logs_auto_purge * @@global.binlog_expire_logs_seconds"
	}
	var seconds int64
	err := pool.QueryRowContext(ctx, query).Scan(&seconds)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == unknownVariable { // before MySQL 8.0.29 and MariaDB 10.6.1
		err = pool.QueryRowContext(ctx, "SELECT CAST(@@global.expire_logs_days * 86400 AS SIGNED)").Scan(&seconds)
	}
	if err != nil {
		return fmt.Errorf("asking the server how long it keeps its binary log: %w", err)
	}
	s.Keeps = time.Duration(seconds) * time.Second
	return nil
}

// The server's errors.
const (
	accessDenied    = 1045
	tableDenied     = 1142
	privilegeDenied = 1227
	unknownVariable = 1193
)

func (s *Server) files(ctx context.Context, pool *sql.DB) error {
	rows, err := pool.QueryContext(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return s.explain(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		var f LogFile
		into := []any{&f.Name, &f.Size}
		for range columns[min(len(into), len(columns)):] {
			into = append(into, new(sql.RawBytes))
		}
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("reading the list of the binary log's files: %w", err)
		}
		s.Files = append(s.Files, f)
	}
	return rows.Err()
}

// explain says what to do about an error.
func (s *Server) explain(err error) error {
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) {
		return fmt.Errorf("reading the binary log: %w", err)
	}
	return s.denied(refused.Number, err)
}

func (s *Server) denied(code uint16, err error) error {
	switch code {
	case accessDenied, tableDenied, privilegeDenied:
		return &MissingError{What: "the account may not read the server's binary log", Right: true,
			Fix: s.Grant() + "; or name another account in backup.log_dsn"}
	}
	return fmt.Errorf("reading the binary log: %w", err)
}

// Grant is the statement that gives the account the rights to read the log.
func (s *Server) Grant() string {
	return "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO " + quotedAccount(s.Account)
}

func quotedAccount(account string) string {
	at := max(0, strings.LastIndexByte(account, '@')) // a name may hold one
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	return quote(account[:at]) + "@" + quote(strings.TrimPrefix(account[at:], "@"))
}

// address is where go-mysql connects to.
func address(c *mysql.Config) (network, addr string) {
	if c.Net == "unix" {
		return "unix", c.Addr
	}
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return "tcp", net.JoinHostPort(c.Addr, "3306")
	}
	return "tcp", c.Addr
}
