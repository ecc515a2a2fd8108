package temporary

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
)

// Config is what a Keeper needs. Locks and Logger are required.
type Config struct {
	// DSN opens the CMS's database, and ServerDSN another server for temporary ones;
	// "" is the CMS's.
	DSN, ServerDSN string
	// CopyDir is where copies of archives, and dumps, are kept; "" is the folder for temporary files.
	CopyDir string
	Locks   *lock.Table
	Logger  *slog.Logger
}

// Keeper makes names for temporary databases and folders, and removes those that
// killed processes left.
type Keeper struct{ config Config }

// New makes a Keeper.
func New(config Config) *Keeper { return &Keeper{config} }

// Item is a database or a folder of ours that lives only for a verification or a
// restore. A lock names it while its holder lives, so that what a killed one
// left is known and removed.
type Item struct {
	kind  string // database.MySQL, database.PostgreSQL or folderKind
	place string // the server, or the host and parent folder, as a short hash
	Name  string
}

const (
	folderKind = "folder"
	lockPrefix = "temporary:"
)

// itemName is what may be dropped or removed: names that we make.
var itemName = regexp.MustCompile(`^(` + DatabasePrefix + `|` + copyFolder + `|` + dumpFolder + `|` + verifyFolder + `)[a-z0-9]{12}$`)

// verifyFolder begins the names of folders with temporary files of SQLite.
const verifyFolder = "cmsjobs-verify-"

func (t Item) lock() string { return lockPrefix + t.kind + "@" + t.place + "/" + t.Name }

func itemOf(lockName string) (t Item, ok bool) {
	kind, rest, ok := strings.Cut(strings.TrimPrefix(lockName, lockPrefix), "@")
	place, name, found := strings.Cut(rest, "/")
	return Item{kind, place, name}, ok && found && itemName.MatchString(name)
}

func randomName(prefix string) string { return prefix + strings.ToLower(rand.Text()[:12]) }

func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}

// serverOf names the server of a DSN without its password.
func serverOf(engine, dsn string) string {
	if engine == database.MySQL {
		if c, err := mysql.ParseDSN(dsn); err == nil {
			return shortHash(c.Net, c.Addr)
		}
	}
	if c, err := pgx.ParseConfig(dsn); engine == database.PostgreSQL && err == nil {
		return shortHash(c.Host, fmt.Sprint(c.Port))
	}
	return ""
}

// folderPlace names a folder on this host.
func folderPlace(parent string) string {
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return shortHash(host, filepath.Clean(parent))
}

// ServerDSN is where verifications restore to.
func (k *Keeper) ServerDSN() string {
	if k.config.ServerDSN != "" {
		return k.config.ServerDSN
	}
	return k.config.DSN
}

// NewDatabase names a new temporary database of an engine.
func (k *Keeper) NewDatabase(engine string) Item {
	if engine == database.SQLite {
		return Item{folderKind, folderPlace(os.TempDir()), randomName(verifyFolder)}
	}
	return Item{engine, serverOf(engine, k.ServerDSN()), randomName(DatabasePrefix)}
}

// NewDatabaseAt names a new temporary database on the server of a DSN of MySQL.
func (k *Keeper) NewDatabaseAt(dsn string) Item {
	return Item{database.MySQL, serverOf(database.MySQL, dsn), randomName(DatabasePrefix)}
}

// Claim takes the lock of a temporary before it is made.
func (k *Keeper) Claim(ctx context.Context, t Item, purpose string) (context.Context, *lock.Lock, error) {
	return k.config.Locks.Acquire(ctx, lock.Request{Name: t.lock(), Purpose: purpose})
}

// Leftovers are temporary databases and folders of killed verifications and restores.
func (k *Keeper) Leftovers(ctx context.Context) ([]string, error) {
	dead, err := k.config.Locks.Dead(ctx, lockPrefix)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range dead {
		if t, ok := itemOf(d.Name); ok {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// Sweep removes the temporary databases and folders of holders that are dead,
// where this process can reach them, and names them. A database of our prefix
// that our table does not know belongs to another installation and stays.
func (k *Keeper) Sweep(ctx context.Context) (removed []string, err error) {
	dead, err := k.config.Locks.Dead(ctx, lockPrefix)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, d := range dead {
		t, ok := itemOf(d.Name)
		if !ok {
			continue
		}
		reached, err := k.remove(ctx, t)
		if err == nil && reached {
			err = k.config.Locks.Forget(ctx, d.Name)
			removed = append(removed, t.Name)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("removing %s, which a killed process left: %w", t.Name, err))
		}
	}
	return removed, errors.Join(failed...)
}

// remove removes a temporary. reached is false where it lies elsewhere.
func (k *Keeper) remove(ctx context.Context, t Item) (reached bool, err error) {
	switch t.kind {
	case folderKind:
		for _, parent := range []string{os.TempDir(), k.CopyParent()} {
			if t.place == folderPlace(parent) {
				return true, os.RemoveAll(filepath.Join(parent, t.Name))
			}
		}
		return false, nil
	case database.MySQL:
		for _, dsn := range []string{k.config.ServerDSN, k.config.DSN} {
			if dsn != "" && serverOf(database.MySQL, dsn) == t.place {
				return true, dropMySQL(ctx, dsn, t.Name)
			}
		}
	case database.PostgreSQL:
		for _, dsn := range []string{k.config.ServerDSN, k.config.DSN} {
			if dsn != "" && serverOf(database.PostgreSQL, dsn) == t.place {
				return true, dropPostgres(ctx, dsn, t.Name)
			}
		}
	}
	return false, nil
}

func dropMySQL(ctx context.Context, dsn, name string) error {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return errors.New("the DSN cannot be read") // its error could show the password
	}
	config.DBName = ""
	server, _, err := dump.Connect(config.FormatDSN())
	if err != nil {
		return err
	}
	_, err = server.ExecContext(ctx, "DROP DATABASE IF EXISTS `"+name+"`")
	return errors.Join(err, server.Close())
}

func dropPostgres(ctx context.Context, dsn, name string) error {
	conn, err := database.ConnectPostgres(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	return errors.Join(err, conn.Close(ctx))
}

// SweepQuietly is what a backup and a verification do first: that it fails is no
// reason not to go on.
func (k *Keeper) SweepQuietly(ctx context.Context) {
	removed, err := k.Sweep(ctx)
	if len(removed) > 0 {
		k.config.Logger.InfoContext(ctx, "removed leftovers of killed verifications or restores",
			"event", "backup.leftovers_removed", "names", removed)
	}
	if err != nil {
		k.config.Logger.WarnContext(ctx, "leftovers of killed verifications or restores not all removed",
			"event", "backup.cleanup_failed", "error", err)
	}
}

// copyFolder begins the names of folders with copies of archives.
const copyFolder = "cmsjobs-restore-"

// NewFolder names a new folder for a copy of an archive; path is where it is to be made.
func (k *Keeper) NewFolder() (item Item, path string) { return k.folder(copyFolder) }

// dumpFolder begins the names of folders with dumps that repositories are to take.
const dumpFolder = "cmsjobs-dump-"

// NewDumpFolder names a new folder for a dump; path is where it is to be made.
func (k *Keeper) NewDumpFolder() (item Item, path string) { return k.folder(dumpFolder) }

func (k *Keeper) folder(prefix string) (item Item, path string) {
	item = Item{folderKind, folderPlace(k.CopyParent()), randomName(prefix)}
	return item, filepath.Join(k.CopyParent(), item.Name)
}

// CopyParent is the folder in which archives are copied.
func (k *Keeper) CopyParent() string {
	if k.config.CopyDir != "" {
		return k.config.CopyDir
	}
	return os.TempDir()
}
