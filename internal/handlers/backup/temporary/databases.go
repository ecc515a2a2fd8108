package temporary

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
)

// DatabasePrefix begins the names of databases that only live for a verification.
const DatabasePrefix = "cmsjobs_verify_"

// Database is a separate empty database, to restore into.
type Database struct {
	dump.PieceLoader
	// Describe looks at what was restored as the dump looked at its source.
	Describe func(context.Context) (dump.Summary, error)
	drop     func(context.Context) error
	Claim    *lock.Lock
}

// Drop drops a database that no lease names.
func (s *Database) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	return s.drop(ctx)
}

// dropTimeout is what dropping a temporary database may take, whatever happened
// before.
const dropTimeout = time.Minute

// End drops the temporary database and releases its lease. One that cannot be
// dropped is found by a sweep.
func (s *Database) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout) // the lease ends ctx
	defer cancel()
	if err := s.drop(ctx); err != nil {
		s.Claim.Release(ctx)
		return err
	}
	s.Claim.Remove(ctx)
	return nil
}

func OpenMySQL(ctx context.Context, dsn, name string, o dump.LoadOptions) (*Database, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	config.DBName = ""
	server, _, err := dump.Connect(config.FormatDSN())
	if err != nil {
		return nil, err
	}
	if _, err := server.ExecContext(ctx, "CREATE DATABASE `"+name+"` CHARACTER SET utf8mb4"); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	drop := func(ctx context.Context) error {
		_, err := server.ExecContext(ctx, "DROP DATABASE IF EXISTS `"+name+"`")
		return errors.Join(err, server.Close())
	}
	config.DBName = name
	l, err := dump.NewLoader(ctx, config.FormatDSN(), o)
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	return &Database{PieceLoader: l, Describe: func(ctx context.Context) (dump.Summary, error) {
		return dump.MySQL(ctx, config.FormatDSN(), dump.Options{}, func(dump.Part, string, []byte) error { return nil })
	}, drop: drop}, nil
}

func OpenPostgres(ctx context.Context, dsn, name string) (*Database, error) {
	conn, err := database.ConnectPostgres(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	drop := func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		return errors.Join(err, conn.Close(ctx))
	}
	tempDBDSN, err := PostgresDSN(dsn, name)
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	l, err := dump.NewPostgresLoader(ctx, tempDBDSN, "")
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	return &Database{PieceLoader: l, Describe: func(ctx context.Context) (dump.Summary, error) {
		return dump.PostgresSummary(ctx, tempDBDSN, dump.Options{})
	}, drop: drop}, nil
}

// PostgresDSN is a DSN for another database on the same server.
func PostgresDSN(dsn, database string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + database, nil // the last one counts
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("the DSN is no URL") // url's error would show the password
	}
	u.Path = "/" + database
	return u.String(), nil
}

// OpenSQLite restores into a file in the folder for temporary files.
func OpenSQLite(folder string) (*Database, error) {
	dir := filepath.Join(os.TempDir(), folder)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "scratch.sqlite")
	l, err := dump.NewFileLoader(name)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Database{PieceLoader: l, Describe: func(ctx context.Context) (dump.Summary, error) {
		return dump.SQLiteSummary(ctx, name)
	}, drop: func(context.Context) error { return os.RemoveAll(dir) }}, nil
}
