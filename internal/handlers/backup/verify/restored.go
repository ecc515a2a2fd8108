package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
)

// openTempDB makes a temporary database, or lessens the level where that is
// not possible.
func (r *reading) openTempDB(ctx context.Context) (context.Context, error) {
	switch {
	case !r.stored.Database:
		r.lessen(manifest.LevelParsed, "the backup holds no database")
		return ctx, nil
	case r.config.MaxBytes > 0 && r.stored.Packed() > r.config.MaxBytes:
		r.lessen(manifest.LevelParsed, fmt.Sprintf("the backup is larger than the %d bytes that are restored for "+
			"verification", r.config.MaxBytes))
		return ctx, nil
	case r.stored.Made != manifest.Complete:
		r.lessen(manifest.LevelParsed, "the backup is partial")
		return ctx, nil
	}
	r.config.Temporary.SweepQuietly(ctx)
	temp, dsn := r.config.Temporary.NewDatabase(r.stored.Engine), r.config.Temporary.ServerDSN()
	outer := ctx
	ctx, claim, err := r.config.Temporary.Claim(outer, temp, "the verification of "+r.stored.ID)
	if err != nil {
		return outer, fmt.Errorf("%w: %w", manifest.ErrUnfinished, err)
	}
	switch r.stored.Engine {
	case database.MySQL:
		r.tempDB, err = r.mysqlTempDB(ctx, dsn, temp.Name)
	case database.PostgreSQL:
		r.tempDB, err = temporary.OpenPostgres(ctx, dsn, temp.Name)
	case database.SQLite:
		r.tempDB, err = temporary.OpenSQLite(temp.Name)
	default:
		err = fmt.Errorf("no temporary database for %s", r.stored.Engine)
	}
	if err != nil || r.tempDB == nil {
		claim.Remove(outer)
		if outer.Err() != nil {
			return outer, context.Cause(outer)
		}
		if err == nil {
			return outer, nil // the server cannot take it: that is said already
		}
		r.verification.Denied = database.Classify(err) == database.Schema
		r.lessen(manifest.LevelParsed, noTempDB(err))
		return outer, nil
	}
	r.tempDB.Claim = claim
	return ctx, nil
}

func (r *reading) closeTempDB(ctx context.Context) {
	if r.tempDB == nil {
		return
	}
	if r.tempDB.PieceLoader != nil {
		_ = r.tempDB.Abort() // compareTempDB takes it when the verification got that far
	}
	if err := r.tempDB.End(ctx); err != nil {
		r.problem("the temporary database could not be dropped: %v", err)
	}
}

// mysqlTempDB makes a temporary database of a name on the server that a DSN names, and leaves out
// of the verification what that server, or the account there, cannot take.
func (r *reading) mysqlTempDB(ctx context.Context, dsn, name string) (*temporary.Database, error) {
	target, err := portable.LookAt(ctx, dsn)
	if err != nil {
		return nil, err
	}
	needs := r.stored.Needs
	if needs != nil {
		tables := *needs
		tables.Trusted = nil // left out below
		if _, refused := tables.Against(target, nil); len(refused) > 0 {
			r.lessen(manifest.LevelParsed, fmt.Sprintf("the server %s cannot take it: %s", target.Server,
				strings.Join(refused, "; ")))
			return nil, nil
		}
	}
	s, err := temporary.OpenMySQL(ctx, dsn, name, dump.LoadOptions{DropDefiners: true, Workers: 2,
		Adapt: target.Adapt(needs, nil)})
	if err != nil || target.Trusted() || needs != nil && len(needs.Trusted) == 0 {
		return s, err
	}
	r.unprogrammed = true
	r.note("triggers, stored programs and views that call them were left out, as this account may not create them " +
		"here (log_bin_trust_function_creators)")
	s.PieceLoader.(*dump.Loader).Only(func(part dump.Part, _ []byte) bool { return part == dump.Main })
	return s, nil
}

// noTempDB says why a backup was not restored, and what would allow it. Where a
// right is missing, that is all there is to say: it is so each night.
func noTempDB(err error) string {
	remedy := "allow the account to create databases named " + temporary.DatabasePrefix + "…, or set backup.verify_dsn"
	if database.Classify(err) == database.Schema {
		return "it has no right to make a temporary database: " + remedy
	}
	return fmt.Sprintf("no temporary database could be made (%s): %v", remedy, err)
}
