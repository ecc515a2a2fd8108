package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
)

// temporary is a database or a folder of ours that lives only for a verification or a
// restore. A lock names it while its holder lives, so that what a killed one
// left is known and removed.
type temporary struct {
	kind  string // database.MySQL, database.PostgreSQL or folderKind
	place string // the server, or the host and parent folder, as a short hash
	name  string
}

const (
	folderKind      = "folder"
	temporaryPrefix = "temporary:"
)

// temporaryName is what may be dropped or removed: names that we make.
var temporaryName = regexp.MustCompile(`^(` + tempDBPrefix + `|` + stagePrefix + `|` + verifyFolder + `)[a-z0-9]{12}$`)

// verifyFolder begins the names of folders with temporary files of SQLite.
const verifyFolder = "cmsjobs-verify-"

func (t temporary) lock() string { return temporaryPrefix + t.kind + "@" + t.place + "/" + t.name }

func temporaryOf(lockName string) (t temporary, ok bool) {
	kind, rest, ok := strings.Cut(strings.TrimPrefix(lockName, temporaryPrefix), "@")
	place, name, found := strings.Cut(rest, "/")
	return temporary{kind, place, name}, ok && found && temporaryName.MatchString(name)
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

// tempDBDSN is where verifications restore to.
func (h *Handler) tempDBDSN() string {
	if h.c.TempDBDSN != "" {
		return h.c.TempDBDSN
	}
	return h.c.DSN
}

// tempDBOf names a new temporary database of an engine.
func (h *Handler) tempDBOf(engine string) temporary {
	if engine == database.SQLite {
		return temporary{folderKind, folderPlace(os.TempDir()), randomName(verifyFolder)}
	}
	return temporary{engine, serverOf(engine, h.tempDBDSN()), randomName(tempDBPrefix)}
}

// claim takes the lock of a temporary before it is made.
func (h *Handler) claim(ctx context.Context, t temporary, purpose string) (context.Context, *lock.Lock, error) {
	return h.locks.Acquire(ctx, lock.Request{Name: t.lock(), Purpose: purpose})
}

// Leftovers are temporary databases and folders of killed verifications and restores.
func (h *Handler) Leftovers(ctx context.Context) ([]string, error) {
	dead, err := h.locks.Dead(ctx, temporaryPrefix)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range dead {
		if t, ok := temporaryOf(d.Name); ok {
			names = append(names, t.name)
		}
	}
	return names, nil
}

// Sweep removes the temporary databases and folders of holders that are dead,
// where this process can reach them, and names them. A database of our prefix
// that our table does not know belongs to another installation and stays.
func (h *Handler) Sweep(ctx context.Context) (removed []string, err error) {
	dead, err := h.locks.Dead(ctx, temporaryPrefix)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, d := range dead {
		t, ok := temporaryOf(d.Name)
		if !ok {
			continue
		}
		reached, err := h.remove(ctx, t)
		if err == nil && reached {
			err = h.locks.Forget(ctx, d.Name)
			removed = append(removed, t.name)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("removing %s, which a killed process left: %w", t.name, err))
		}
	}
	return removed, errors.Join(failed...)
}

// remove removes a temporary. reached is false where it lies elsewhere.
func (h *Handler) remove(ctx context.Context, t temporary) (reached bool, err error) {
	switch t.kind {
	case folderKind:
		for _, parent := range []string{os.TempDir(), h.stageParent()} {
			if t.place == folderPlace(parent) {
				return true, os.RemoveAll(filepath.Join(parent, t.name))
			}
		}
		return false, nil
	case database.MySQL:
		for _, dsn := range []string{h.c.TempDBDSN, h.c.DSN} {
			if dsn != "" && serverOf(database.MySQL, dsn) == t.place {
				return true, dropMySQL(ctx, dsn, t.name)
			}
		}
	case database.PostgreSQL:
		for _, dsn := range []string{h.c.TempDBDSN, h.c.DSN} {
			if dsn != "" && serverOf(database.PostgreSQL, dsn) == t.place {
				return true, dropPostgres(ctx, dsn, t.name)
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

// judgeLeftovers names what killed verifications and restores left.
func (h *Handler) judgeLeftovers(ctx context.Context, s *Health) error {
	names, err := h.Leftovers(ctx)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		s.warn("leftover", "", "killed verifications or restores left %s or folders, which take space and hold the site's data: %s "+
			"(the next backup removes them, or cmsjobs backup sweep)", english.Plural(len(names), "temporary database", ""), first(names, 3))
	}
	return nil
}

// sweepQuietly is what a backup and a verification do first: that it fails is no
// reason not to go on.
func (h *Handler) sweepQuietly(ctx context.Context) {
	removed, err := h.Sweep(ctx)
	if len(removed) > 0 {
		h.c.Logger.InfoContext(ctx, "removed leftovers of killed verifications or restores", "event", "backup.leftovers_removed",
			"names", removed)
	}
	if err != nil {
		h.c.Logger.WarnContext(ctx, "leftovers of killed verifications or restores not all removed",
			"event", "backup.cleanup_failed", "error", err)
	}
}
