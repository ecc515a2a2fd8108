package backup

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// tempDBPrefix begins the names of databases that only live for a verification.
const tempDBPrefix = "cmsjobs_verify_"

// loader restores the pieces of a dump, in order. Close reports what is missing.
type loader interface {
	Load(part dump.Part, table string, piece []byte) error
	Close() error
}

// tempDB is a separate empty database, to restore into.
type tempDB struct {
	loader
	// describe looks at what was restored as the dump looked at its source.
	describe func(context.Context) (dump.Summary, error)
	drop     func(context.Context) error
	lock     *lock.Lock
}

// openTempDB makes a temporary database, or lessens the level where that is
// not possible.
func (p *verifier) openTempDB(ctx context.Context) (context.Context, error) {
	switch {
	case !p.stored.Database:
		p.lessen(manifest.LevelParsed, "the backup holds no database")
		return ctx, nil
	case p.c.Options.VerifyMaxBytes > 0 && p.stored.Size > p.c.Options.VerifyMaxBytes:
		p.lessen(manifest.LevelParsed, fmt.Sprintf("the backup is larger than the %d bytes that are restored for verification", p.c.Options.VerifyMaxBytes))
		return ctx, nil
	case p.stored.Made != manifest.Complete:
		p.lessen(manifest.LevelParsed, "the backup is partial")
		return ctx, nil
	}
	p.sweepQuietly(ctx)
	temp, dsn := p.tempDBOf(p.stored.Engine), p.tempDBDSN()
	outer := ctx
	ctx, claim, err := p.claim(outer, temp, "the verification of "+p.stored.ID)
	if err != nil {
		return outer, fmt.Errorf("%w: %w", manifest.ErrUnfinished, err)
	}
	switch p.stored.Engine {
	case database.MySQL:
		p.tempDB, err = p.mysqlTempDB(ctx, dsn, temp.name)
	case database.PostgreSQL:
		p.tempDB, err = postgresTempDB(ctx, dsn, temp.name)
	case database.SQLite:
		p.tempDB, err = sqliteTempDB(temp.name)
	default:
		err = fmt.Errorf("no temporary database for %s", p.stored.Engine)
	}
	if err != nil || p.tempDB == nil {
		claim.Remove(outer)
		if outer.Err() != nil {
			return outer, context.Cause(outer)
		}
		if err == nil {
			return outer, nil // the server cannot take it: that is said already
		}
		p.lessen(manifest.LevelParsed, fmt.Sprintf("no temporary database could be made (grant CREATE and DROP on %s%%, or name another server): %v", tempDBPrefix, err))
		return outer, nil
	}
	p.tempDB.lock = claim
	return ctx, nil
}

// dropTimeout is what dropping a temporary database may take, whatever happened
// before.
const dropTimeout = time.Minute

func (p *verifier) closeTempDB(ctx context.Context) {
	if p.tempDB == nil {
		return
	}
	if p.tempDB.loader != nil {
		p.tempDB.Close() // compareScratch takes it when the verification got that far
	}
	if err := p.tempDB.end(ctx); err != nil {
		p.problem("the temporary database could not be dropped: %v", err)
	}
}

// end drops the temporary database and releases its lease. One that cannot be
// dropped is found by a sweep.
func (s *tempDB) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout) // the lease ends ctx
	defer cancel()
	if err := s.drop(ctx); err != nil {
		s.lock.Release(ctx)
		return err
	}
	s.lock.Remove(ctx)
	return nil
}

// mysqlTempDB makes a temporary database of a name on the server that a DSN names, and leaves out
// of the verification what that server, or the account there, cannot take.
func (p *verifier) mysqlTempDB(ctx context.Context, dsn, name string) (*tempDB, error) {
	target, err := p.lookAt(ctx, dsn)
	if err != nil {
		return nil, err
	}
	needs := p.stored.Needs
	if needs != nil {
		tables := *needs
		tables.Trusted = nil // left out below
		if _, refused := tables.Against(target, nil); len(refused) > 0 {
			p.lessen(manifest.LevelParsed, fmt.Sprintf("the server %s cannot take it: %s", target.Server, strings.Join(refused, "; ")))
			return nil, nil
		}
	}
	s, err := mysqlTempDB(ctx, dsn, name, dump.LoadOptions{DropDefiners: true, Workers: 2, Adapt: target.Adapt(needs, nil)})
	if err != nil || target.Trusted() || needs != nil && len(needs.Trusted) == 0 {
		return s, err
	}
	p.unprogrammed = true
	p.note("triggers, stored programs and views that call them were left out, as this account may not create them here (log_bin_trust_function_creators)")
	s.loader.(*dump.Loader).Only(func(part dump.Part, _ []byte) bool { return part == dump.Main })
	return s, nil
}

func mysqlTempDB(ctx context.Context, dsn, name string, o dump.LoadOptions) (*tempDB, error) {
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
	return &tempDB{loader: l, describe: func(ctx context.Context) (dump.Summary, error) {
		return dump.MySQL(ctx, config.FormatDSN(), dump.Options{}, func(dump.Part, string, []byte) error { return nil })
	}, drop: drop}, nil
}

func postgresTempDB(ctx context.Context, dsn, name string) (*tempDB, error) {
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
	tempDBDSN, err := postgresDSN(dsn, name)
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	l, err := dump.NewPostgresLoader(ctx, tempDBDSN)
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	return &tempDB{loader: l, describe: func(ctx context.Context) (dump.Summary, error) {
		return dump.PostgresSummary(ctx, tempDBDSN, dump.Options{})
	}, drop: drop}, nil
}

// postgresDSN is a DSN for another database on the same server.
func postgresDSN(dsn, database string) (string, error) {
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

// sqliteTempDB restores into a file in the folder for temporary files.
func sqliteTempDB(folder string) (*tempDB, error) {
	dir := filepath.Join(os.TempDir(), folder)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "scratch.sqlite")
	l, err := newFileLoader(name)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &tempDB{loader: l, describe: func(ctx context.Context) (dump.Summary, error) {
		return dump.SQLiteSummary(ctx, name)
	}, drop: func(context.Context) error { return os.RemoveAll(dir) }}, nil
}

// fileLoader joins the pieces of a dump that is a file.
type fileLoader struct{ f *os.File }

func newFileLoader(name string) (fileLoader, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return fileLoader{f}, err
}

func (l fileLoader) Load(_ dump.Part, _ string, piece []byte) error {
	_, err := l.f.Write(piece)
	return err
}

func (l fileLoader) Close() error { return errors.Join(l.f.Sync(), l.f.Close()) }
