package restore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
)

const journalTable = "cmsjobs_backup_restores"

// phase is how far a restore of the site came.
type phase string

// The phases. The exchange is one statement: until it happens the site is as it was.
const (
	loading   phase = "loading"   // beside the site
	ready     phase = "ready"     // everything was loaded; the exchange may have happened
	exchanged phase = "exchanged" // the database is the backup's; the rest follows
	published phase = "published" // everything is the backup's
	undoing   phase = "undoing"   // what was loaded is removed
)

// entry is the journal of one restore of the site: a row of cmsjobs_backup_restores.
type entry struct {
	ID      string `db:"id"`
	Backup  string `db:"backup_id"`
	Host    string `db:"host"` // and process id
	Phase   phase  `db:"phase"`
	Started int64  `db:"started_at"` // Unix milliseconds of the database's clock
	Text    string `db:"detail"`
	detail  detail
}

// detail is what a later process needs to finish a restore, or to roll it back.
type detail struct {
	// Engine is that of the site's database; "" where it stays.
	Engine string `json:"engine,omitempty"`
	// Files are the labels of the folders that get files.
	Files []string `json:"files,omitempty"`
	// Safety is the backup that was made before.
	Safety string   `json:"safety,omitempty"`
	Set    swap.Set `json:"set"`
}

// begin writes down that a restore of the site begins.
func (r *Restorer) begin(ctx context.Context, q Request, safety string) (*entry, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	e := &entry{ID: strings.ToLower(rand.Text()[:10]), Backup: q.Backup.ID, Phase: loading,
		Host: fmt.Sprintf("%.150s (process %d)", host, os.Getpid())}
	e.detail.Set.ID, e.detail.Safety = e.ID, safety
	if q.inPlaceDatabase() {
		e.detail.Engine = q.Backup.Engine
	}
	if q.inPlaceFiles() {
		for _, set := range r.config.Files {
			e.detail.Files = append(e.detail.Files, set.Label)
		}
	}
	if err := e.encode(); err != nil {
		return nil, err
	}
	db := r.config.DB
	_, err = db.ExecContext(ctx, db.Rebind("INSERT INTO cmsjobs_backup_restores (id, backup_id, host, phase, "+
		"started_at, detail) VALUES (?, ?, ?, ?, "+database.Of(db).Millis+", ?)"), e.ID, e.Backup, e.Host, e.Phase,
		e.Text)
	if err != nil {
		return nil, fmt.Errorf("writing down that the restore begins: %w", err)
	}
	err = db.GetContext(ctx, &e.Started, db.Rebind("SELECT started_at FROM cmsjobs_backup_restores WHERE id = ?"), e.ID)
	return e, err
}

func (e *entry) encode() error {
	data, err := json.Marshal(e.detail)
	e.Text = string(data)
	return err
}

// enter writes down the next phase.
func (r *Restorer) enter(ctx context.Context, e *entry, next phase) error {
	e.Phase = next
	if err := e.encode(); err != nil {
		return err
	}
	db := r.config.DB
	result, err := db.ExecContext(ctx,
		db.Rebind("UPDATE cmsjobs_backup_restores SET phase = ?, detail = ? WHERE id = ?"),
		e.Phase, e.Text, e.ID)
	if err != nil {
		return fmt.Errorf("writing down how far the restore came: %w", err)
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	// A restored PostgreSQL database may have brought an empty table; MySQL says 0 of a row that is the same, too.
	if found, err := r.entries(ctx); err != nil || len(found) > 0 {
		return err
	}
	_, err = db.ExecContext(ctx, db.Rebind("INSERT INTO cmsjobs_backup_restores (id, backup_id, host, phase, "+
		"started_at, detail) VALUES (?, ?, ?, ?, ?, ?)"), e.ID, e.Backup, e.Host, e.Phase, e.Started, e.Text)
	return err
}

// forget removes the journal of a restore that came to its end.
func (r *Restorer) forget(ctx context.Context, e *entry) error {
	if _, err := r.config.DB.ExecContext(ctx, r.config.DB.Rebind("DELETE FROM cmsjobs_backup_restores WHERE id = ?"),
		e.ID); err != nil {
		return fmt.Errorf("writing down that the restore ended: %w", err)
	}
	return nil
}

// entries are the restores that neither succeeded nor were rolled back, oldest first.
func (r *Restorer) entries(ctx context.Context) ([]entry, error) {
	var all []entry
	if err := r.config.DB.SelectContext(ctx, &all, "SELECT id, backup_id, host, phase, started_at, detail FROM "+
		"cmsjobs_backup_restores ORDER BY started_at, id"); err != nil {
		return nil, fmt.Errorf("looking for restores that did not finish: %w", err)
	}
	for i := range all {
		if err := json.Unmarshal([]byte(all[i].Text), &all[i].detail); err != nil {
			return nil, fmt.Errorf("reading what is known of the restore %s: %w", all[i].ID, err)
		}
		if all[i].detail.Set.ID != all[i].ID {
			return nil, errors.New("what is known of the restore " + all[i].ID + " is damaged")
		}
	}
	return all, nil
}

// String names a restore for people.
func (e *entry) String() string {
	return fmt.Sprintf("the restore of %s, begun %s on %s,", e.Backup,
		time.UnixMilli(e.Started).UTC().Format(time.RFC3339), e.Host)
}
