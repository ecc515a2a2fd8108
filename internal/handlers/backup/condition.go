package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// Condition is how the backups stand by our own tables. It is cheap: no
// destination is asked.
type Condition struct {
	// LastComplete and LastProof are zero where there was none; a proof is a
	// backup that was read back (parsed or restored) and found good.
	LastComplete, LastProof time.Time
	LastBytes               int64 // size of the last complete one
	// Unfinished names a restore of the site that began and did not succeed.
	Unfinished string
	// Scratch are databases or folders of verifications, while none can run.
	Scratch []string
}

// Condition looks at the state of backups.
func (h *Handler) Condition(ctx context.Context) (Condition, error) {
	var c Condition
	var complete, proof int64
	err := h.c.DB.GetContext(ctx, &complete, h.c.DB.Rebind("SELECT COALESCE(MAX(finished_at), 0) FROM cmsjobs_backups WHERE status = ?"), string(Good))
	if err == nil {
		err = h.c.DB.GetContext(ctx, &proof, h.c.DB.Rebind("SELECT COALESCE(MAX(finished_at), 0) FROM cmsjobs_backup_proofs WHERE ok = 1 AND level IN (?, ?)"), string(LevelParsed), string(LevelRestored))
	}
	if err != nil {
		return c, fmt.Errorf("reading the history of backups: %w", err)
	}
	if complete > 0 {
		if last, err := h.History(ctx, conditionHistory); err == nil {
			c.LastBytes = lastComplete(last)
		}
		c.LastComplete = time.UnixMilli(complete).UTC()
	}
	if proof > 0 {
		c.LastProof = time.UnixMilli(proof).UTC()
	}
	running, err := h.readLocks(ctx, &c)
	if err != nil || running {
		return c, err
	}
	c.Scratch, err = h.scratchLeft(ctx)
	return c, err
}

// conditionHistory is how many backups are looked at for the last complete one.
const conditionHistory = 20

func lastComplete(newestFirst []Report) int64 {
	for _, r := range newestFirst {
		if r.Status == Good {
			return r.Size
		}
	}
	return 0
}

// restoreRow is the row of cmsjobs_backup_lock that is there while a restore
// changes the site, and after one that did not succeed.
const restoreRow = "restore"

// readLocks says whether a backup or restore runs now, and finds a restore
// that does not run any more.
func (h *Handler) readLocks(ctx context.Context, c *Condition) (running bool, err error) {
	var rows []struct {
		Name, Holder string
		Expires      int64 `db:"expires_at"`
	}
	if err := h.c.DB.SelectContext(ctx, &rows, "SELECT name, holder, expires_at FROM cmsjobs_backup_lock"); err != nil {
		return false, fmt.Errorf("reading the backup's lock: %w", err)
	}
	for _, r := range rows {
		switch {
		case r.Name == lockName:
			running = r.Expires > h.c.Now().UnixMilli()
		case r.Name == restoreRow:
			c.Unfinished = fmt.Sprintf("the restore of %s, begun %s,", r.Holder, time.UnixMilli(r.Expires).UTC().Format(time.RFC3339))
		}
	}
	if running {
		c.Unfinished = "" // perhaps it is this one
	}
	return running, nil
}

// beginRestore writes down that the site is being changed; finish says that it
// is whole again. A restore into another place needs neither.
func (h *Handler) beginRestore(ctx context.Context, q RestoreRequest) (finish func() error, err error) {
	if (!q.Database || q.IntoDSN != "") && (!q.Files || q.IntoFolder != "") {
		return func() error { return nil }, nil
	}
	if err := h.endRestore(ctx); err != nil {
		return nil, err
	}
	_, err = h.c.DB.ExecContext(ctx, h.c.DB.Rebind("INSERT INTO cmsjobs_backup_lock (name, holder, expires_at) VALUES (?, ?, ?)"), restoreRow, q.Backup.ID, h.c.Now().UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("writing down that the restore begins: %w", err)
	}
	return func() error { return h.endRestore(context.WithoutCancel(ctx)) }, nil
}

func (h *Handler) endRestore(ctx context.Context) error {
	if _, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("DELETE FROM cmsjobs_backup_lock WHERE name = ?"), restoreRow); err != nil {
		return fmt.Errorf("writing down that no restore runs: %w", err)
	}
	return nil
}

// scratchLeft lists what verifications left behind that were killed.
func (h *Handler) scratchLeft(ctx context.Context) ([]string, error) {
	like := strings.ReplaceAll(scratchPrefix, "_", `!_`) + "%"
	switch h.c.DB.DriverName() {
	case "mysql":
		return databasesLike(ctx, h.c.DB, h.c.ScratchDSN, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE ? ESCAPE '!' ORDER BY schema_name LIMIT 20", like)
	case "pgx":
		return databasesLike(ctx, h.c.DB, "", "SELECT datname FROM pg_database WHERE datname LIKE $1 ESCAPE '!' ORDER BY datname LIMIT 20", like)
	}
	return filepath.Glob(filepath.Join(os.TempDir(), "cmsjobs-verify-*"))
}

// databasesLike asks MySQL's server of dsn, or db where dsn is empty.
func databasesLike(ctx context.Context, db *sqlx.DB, dsn, query, like string) ([]string, error) {
	var names []string
	if dsn == "" {
		return names, db.SelectContext(ctx, &names, query, like)
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errors.New("the DSN of the verification cannot be read") // the driver's error may repeat the password
	}
	config.DBName = ""
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errors.New("the DSN of the verification is refused by the driver")
	}
	server := sql.OpenDB(connector)
	rows, err := server.QueryContext(ctx, query, like)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listing temporary databases: %w", err), server.Close())
	}
	for rows.Next() {
		var name string
		if err = rows.Scan(&name); err != nil {
			break
		}
		names = append(names, name)
	}
	return names, errors.Join(err, rows.Err(), rows.Close(), server.Close())
}
