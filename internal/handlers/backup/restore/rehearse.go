package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
)

// fit says what of the backup's database would be otherwise in the database to
// restore into, and what that server cannot take.
func (r *Restorer) fit(ctx context.Context, q Request) (warnings, refused []string, err error) {
	if q.Backup.Engine != database.MySQL || q.Backup.Needs == nil {
		return nil, nil, nil
	}
	target, err := portable.LookAt(ctx, r.targetDSN(q))
	if err != nil {
		return nil, nil, err
	}
	needs := q.Backup.Needs
	if len(q.Tables) > 0 { // routines stay
		needs = needs.OfTables(q.Tables)
	}
	warnings, refused = needs.Against(target, q.Collations)
	return warnings, refused, nil
}

// rehearse restores a dump of another type or version of server into a scratch
// database, so that what the server does not take shows before anything is changed.
// A plan leaves out the rows, which take as long as the restore; the restore itself
// tries them too, as a row may break a unique key under another collation. Where no
// temporary database can be made, only that is noted.
func (r *Restorer) rehearse(ctx context.Context, q Request, plan *Plan, rows bool, progress func(catalog.Step)) (
	err error) {
	needs := q.Backup.Needs
	if !q.Database || q.Backup.Engine != database.MySQL || needs == nil {
		return nil
	}
	target, err := portable.LookAt(ctx, r.targetDSN(q))
	if err != nil || !needs.Foreign(target) {
		return err
	}
	temp := r.config.Temporary.NewDatabase(database.MySQL)
	outer := ctx
	ctx, claim, err := r.config.Temporary.Claim(outer, temp, "the plan of restoring "+q.Backup.ID)
	if err != nil {
		return fmt.Errorf("rehearsing the restore: %w", err)
	}
	s, err := temporary.OpenMySQL(ctx, r.targetDSN(q), temp.Name,
		dump.LoadOptions{DropDefiners: true, Workers: 1, Adapt: target.Adapt(needs, q.Collations)})
	if err != nil {
		claim.Remove(outer)
		if !rows { // it is in the plan
			plan.Warnings = append(plan.Warnings, fmt.Sprintf("that the server takes every table and program could "+
				"not be tried, as no temporary database can be made there: %v", err))
		}
		return nil
	}
	s.Claim = claim
	defer func() { err = errors.Join(err, s.End(outer)) }()
	l := onlyTables{s.PieceLoader.(*dump.Loader), func(table string) bool { return q.replaces(r, table) },
		len(q.Tables) > 0}
	l.Only(func(part dump.Part, statement []byte) bool {
		return (rows || !writesRows(statement)) && l.wants(part, statement)
	})
	err = r.config.Catalog.Read(ctx, q.Backup, progress, func(e archive.Entry, content io.Reader) error {
		if !manifest.IsPart(e.Name) {
			return nil
		}
		data, err := manifest.ReadEntry(e, content)
		if err != nil {
			return err
		}
		part, table := manifest.PartOf(e.Name)
		return l.Load(part, table, data)
	})
	if err := errors.Join(err, l.Close()); err != nil {
		return fmt.Errorf("%s does not take what was made on %s: %w", target.Server, needs.Server, err)
	}
	return nil
}

// writesRows knows the statements of a dump that write rows, or put long values together.
func writesRows(statement []byte) bool {
	for _, start := range []string{"INSERT ", "REPLACE ", "SET @cmsjobs_"} {
		if strings.HasPrefix(string(statement[:min(len(statement), 16)]), start) {
			return true
		}
	}
	return false
}
