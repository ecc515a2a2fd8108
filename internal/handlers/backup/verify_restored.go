package backup

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
	p.SweepQuietly(ctx)
	temp, dsn := p.NewDatabase(p.stored.Engine), p.ServerDSN()
	outer := ctx
	ctx, claim, err := p.Claim(outer, temp, "the verification of "+p.stored.ID)
	if err != nil {
		return outer, fmt.Errorf("%w: %w", manifest.ErrUnfinished, err)
	}
	switch p.stored.Engine {
	case database.MySQL:
		p.tempDB, err = p.mysqlTempDB(ctx, dsn, temp.Name)
	case database.PostgreSQL:
		p.tempDB, err = temporary.OpenPostgres(ctx, dsn, temp.Name)
	case database.SQLite:
		p.tempDB, err = temporary.OpenSQLite(temp.Name)
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
		p.lessen(manifest.LevelParsed, fmt.Sprintf("no temporary database could be made (grant CREATE and DROP on %s%%, or name another server): %v", temporary.DatabasePrefix, err))
		return outer, nil
	}
	p.tempDB.Claim = claim
	return ctx, nil
}

func (p *verifier) closeTempDB(ctx context.Context) {
	if p.tempDB == nil {
		return
	}
	if p.tempDB.PieceLoader != nil {
		p.tempDB.Close() // compareScratch takes it when the verification got that far
	}
	if err := p.tempDB.End(ctx); err != nil {
		p.problem("the temporary database could not be dropped: %v", err)
	}
}

// mysqlTempDB makes a temporary database of a name on the server that a DSN names, and leaves out
// of the verification what that server, or the account there, cannot take.
func (p *verifier) mysqlTempDB(ctx context.Context, dsn, name string) (*temporary.Database, error) {
	target, err := portable.LookAt(ctx, dsn)
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
	s, err := temporary.OpenMySQL(ctx, dsn, name, dump.LoadOptions{DropDefiners: true, Workers: 2, Adapt: target.Adapt(needs, nil)})
	if err != nil || target.Trusted() || needs != nil && len(needs.Trusted) == 0 {
		return s, err
	}
	p.unprogrammed = true
	p.note("triggers, stored programs and views that call them were left out, as this account may not create them here (log_bin_trust_function_creators)")
	s.PieceLoader.(*dump.Loader).Only(func(part dump.Part, _ []byte) bool { return part == dump.Main })
	return s, nil
}
