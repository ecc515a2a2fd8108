package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
)

// tryDatabase adds the dump. One that fails is no reason to leave the files out.
func (r *run) tryDatabase(ctx context.Context) error {
	err := r.addDatabase(ctx)
	if err == nil || ctx.Err() != nil || errors.Is(err, errNoDestination) {
		return err
	}
	r.manifest.Status, r.manifest.DatabaseError = manifest.Partial, err.Error()
	if r.spool != nil {
		r.manifest.Parts = nil // none of them is stored
	}
	r.warn("the database is not in this backup: %v", err)
	return nil
}

// addDatabase packs the dump, piece by piece, as it comes.
func (r *run) addDatabase(ctx context.Context) error {
	sink := func(part dump.Part, table string, sql []byte) error {
		folder := manifest.DatabaseFolder
		if part == dump.Extra {
			folder = manifest.RoutinesFolder
		}
		name := fmt.Sprintf("%s%06d.sql", folder, len(r.manifest.Parts)+1)
		if table != "" {
			name = fmt.Sprintf("%s%06d-%s.sql", folder, len(r.manifest.Parts)+1, manifest.TableEntry(table))
		}
		sum, err := r.addPart(name, sql)
		if err != nil {
			return err
		}
		r.manifest.Parts = append(r.manifest.Parts, manifest.Part{Name: name, Table: table, Size: int64(len(sql)),
			SHA256: sum})
		return nil
	}
	options := dump.Options{
		Tables: r.request.Tables, Throttle: r.c.Options.Throttle,
		Exclude: r.excluded, Empty: r.emptied, CutByKey: r.spool != nil,
		LogPosition: r.c.Options.Log != LogOff && len(r.request.Tables) == 0,
		Progress: func(table string, rows, n int64) {
			r.moved()
			r.progress(catalog.Step{Done: n, Total: r.total, Note: fmt.Sprintf("database: %s, %d rows so far", table,
				rows)})
		},
	}
	summary, err := r.dump(ctx, options, sink)
	if err != nil {
		return err
	}
	r.manifest.Dump = &summary
	for _, w := range summary.Warnings {
		r.warn("%s", w)
	}
	return nil
}

// addPart packs a part of the dump, or keeps it until it is stored in repositories.
func (r *run) addPart(name string, sql []byte) (sum string, err error) {
	if r.spool != nil {
		return r.spool.Add(name, sql)
	}
	return r.archive.Add(name, r.c.Now(), int64(len(sql)), bytes.NewReader(sql))
}

// dump reads the CMS's database with the tool that fits it.
func (r *run) dump(ctx context.Context, o dump.Options, sink dump.Sink) (dump.Summary, error) {
	if r.c.DSN == "" {
		return dump.Summary{}, errors.New("no DSN is configured for dumps")
	}
	switch e := r.manifest.Engine; {
	case e == database.MySQL && cmp.Or(r.request.Tool, r.c.Options.Tool) == "mysqldump":
		return dump.Mysqldump(ctx, r.c.DSN, o, sink)
	case e == database.MySQL:
		return dump.MySQL(ctx, r.c.DSN, o, sink)
	case e == database.PostgreSQL:
		return dump.Postgres(ctx, r.c.DSN, o, sink)
	case e == database.SQLite:
		return dump.SQLite(ctx, r.c.DSN, o, sink)
	default:
		return dump.Summary{}, fmt.Errorf("no way to dump a database of %s", e)
	}
}

// SecretTables are dumped without rows unless Options.WithSecrets: what they
// hold gives access or names visitors, nobody misses it after a restore, and a
// backup lies at places that the database does not. Names without the CMS's
// prefix. After a restore people sign in again, reset links are asked for again,
// and webhooks are entered again with new secrets.
//
// API tokens and passwords of accounts stay: only their hashes are stored.
var SecretTables = []string{
	"password_resets", "password_reset_tokens", // the CMS's reset links
	"cmsjobs_analytics_salts", // with them, hashes lead back to visitors
	"cmsjobs_sessions",        // of the admin pages
	"cmsjobs_logins",          // addresses of wrong sign-ins
	"cmsjobs_idempotency",     // answers of the API
	"cmsjobs_mail_payloads",   // letters that wait, reset links among them
	"cmsjobs_webhooks",        // secrets in clear, as they sign with them
}

// ledgerPrefix begins the names of the service's tables. They are dumped without
// rows whatever the options say: the signing key is among them. A restore into
// the site's own database leaves them alone: what was backed up and verified stays
// known.
const ledgerPrefix = "cmsjobs_backup"

// emptied says whether a table is dumped without rows.
func (h *Handler) emptied(table string) bool {
	return strings.HasPrefix(table, ledgerPrefix) || h.tablesIn(h.c.Options.EmptyTables)(table) ||
		!h.c.Options.WithSecrets && h.tablesIn(SecretTables)(table)
}

// excluded says whether a table is left out: as the options say, or as it is what a
// restore loads beside the live tables.
func (h *Handler) excluded(table string) bool {
	return swap.Temporary(table) || h.tablesIn(h.c.Options.ExcludeTables)(table)
}

// tablesIn knows the tables of a list of patterns without the CMS's prefix.
func (h *Handler) tablesIn(patterns []string) func(string) bool {
	return func(table string) bool {
		name, _ := strings.CutPrefix(table, h.c.Site.Prefix)
		return fileset.MatchesAny(patterns, name)
	}
}
