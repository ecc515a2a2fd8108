package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/migrations"
)

func checkDatabase(_ context.Context, r *app.Services) ([]Finding, error) {
	d := r.Store.Describe()
	return []Finding{ok("%s (%s)", d.Server, r.Config.Database.DSN)}, nil
}

// checkDurability: a commit that may be lost in a power cut lets a job run
// twice or never.
func checkDurability(ctx context.Context, r *app.Services) ([]Finding, error) {
	d, err := database.AskDurability(ctx, r.DB)
	if err != nil {
		return nil, err
	}
	if d.Loss != "" {
		return []Finding{warn(d.Remedy, "%s: %s", d.Setting, d.Loss)}, nil
	}
	return []Finding{ok("commits are flushed to disk (%s)", d.Setting)}, nil
}

// checkClock compares clocks. The database's decides what is due, so a wrong
// one of ours only makes logs and lists hard to read.
func checkClock(ctx context.Context, r *app.Services) ([]Finding, error) {
	before := r.Now()
	var millis int64
	if err := r.DB.GetContext(ctx, &millis, "SELECT "+database.Of(r.DB).Clock); err != nil {
		return nil, err
	}
	middle := before.Add(r.Now().Sub(before) / 2)
	skew := time.UnixMilli(millis).Sub(middle).Round(time.Millisecond)
	if skew.Abs() > 2*time.Second {
		return []Finding{warn("run an NTP service on both hosts", "the database's clock and this host's differ by "+
			"%s; the database's decides what is due", skew.Abs())}, nil
	}
	return []Finding{
		ok("the database's clock and this host's agree (within %s)", max(skew.Abs(), 10*time.Millisecond))}, nil
}

func checkZone(ctx context.Context, r *app.Services) ([]Finding, error) {
	zone, err := r.Site.Zone(ctx)
	if err != nil {
		return []Finding{fail("choose a time zone in the CMS's general settings", "%v", err)}, nil
	}
	settings, err := r.Site.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if settings.String("time_zone", "") == "" && r.Config.CMS.Zone == "" {
		return []Finding{warn("choose one in the CMS's settings, or set cms.zone", "the CMS's settings name no time "+
			"zone; %s is used", zone)}, nil
	}
	return []Finding{ok("the CMS's wall clock is %s", zone)}, nil
}

func checkLayout(_ context.Context, r *app.Services) ([]Finding, error) {
	d := r.Store.Describe()
	found := []Finding{ok("%s has the %s layout, times as %s; failed jobs go to %s", d.Table, d.Layout, d.Times,
		d.FailedTable)}
	if !d.Transactional {
		found = append(found, fail("ALTER TABLE "+d.Table+" ENGINE=InnoDB", "%s has an engine without transactions: "+
			"a crash may lose or repeat jobs", d.Table))
	}
	if offer := r.Store.OfferIndex(); offer != "" {
		found = append(found, warn("", "the index that keeps claims fast is missing; it matters from about 10,000 "+
			"waiting jobs on").by("cmsjobs migrate index (it says: %s)", offer))
	}
	for _, note := range d.Notes {
		if !strings.Contains(note, "index") && !strings.Contains(note, "engine") { // said above
			found = append(found, warn("", "%s", note))
		}
	}
	return found, nil
}

// checkNumbers warns before a table runs out of row numbers.
func checkNumbers(ctx context.Context, r *app.Services) ([]Finding, error) {
	found := []Finding{}
	for _, table := range []string{cmp.Or(r.Site.Jobs, "jobs"), "failed_jobs"} {
		columns, err := r.Site.Columns(ctx, table)
		if err != nil {
			return nil, err
		}
		limit := largest(columns["id"])
		var highest int64
		if err := r.DB.GetContext(ctx, &highest, "SELECT COALESCE(MAX(id), 0) FROM "+r.Site.Table(table)); err != nil {
			return nil, err
		}
		if share := float64(highest) / limit; share > 0.8 {
			found = append(found,
				fail(fmt.Sprintf("ALTER TABLE %s MODIFY id BIGINT UNSIGNED AUTO_INCREMENT", r.Site.Table(table)),
					"the row numbers of %s are used up to %.0f %% (%s): inserting will soon fail", table, 100*share,
					columns["id"]))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("there are enough row numbers left"))
	}
	return found, nil
}

// largest is the highest number that a column's type holds.
func largest(kind string) float64 {
	kind = strings.ToLower(kind)
	limit := float64(1<<63 - 1)
	switch {
	case strings.Contains(kind, "bigint"), kind == "integer" && !strings.Contains(kind, "unsigned"):
		if kind == "integer" {
			return limit // SQLite's; PostgreSQL's serial says int4 elsewhere
		}
	case strings.Contains(kind, "mediumint"):
		limit = 1<<23 - 1
	case strings.Contains(kind, "int"):
		limit = 1<<31 - 1
	}
	if strings.Contains(kind, "unsigned") {
		limit = limit*2 + 1
	}
	return limit
}

func checkMigrations(ctx context.Context, r *app.Services) ([]Finding, error) {
	p, err := migrations.Provider(r.OwnDB)
	if err != nil {
		return nil, err
	}
	list, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	var waiting []string
	for _, m := range list {
		if m.State != "applied" {
			waiting = append(waiting, m.Source.Path)
		}
	}
	if len(waiting) > 0 {
		return []Finding{fail("cmsjobs migrate up", "%d of our migrations did not run: %s", len(waiting),
			strings.Join(waiting, ", "))}, nil
	}
	return []Finding{ok("all %d migrations ran", len(list))}, nil
}

// checkRights tries what workers need, in a transaction that is undone.
func checkRights(ctx context.Context, r *app.Services) ([]Finding, error) {
	tx, err := r.DB.BeginTxx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // nothing is to stay
	for _, table := range []string{cmp.Or(r.Site.Jobs, "jobs"), "failed_jobs"} {
		name := r.Site.Table(table)
		for verb, statement := range map[string]string{"change": "UPDATE " + name + " SET queue = queue WHERE id = -1",
			"delete": "DELETE FROM " + name + " WHERE id = -1"} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return []Finding{fail("GRANT SELECT, INSERT, UPDATE, DELETE on the CMS's database to the user",
					"the user may not %s rows of %s: %v", verb, name, err)}, nil
			}
		}
	}
	return []Finding{ok("rows of jobs and failed_jobs can be read, changed and deleted")}, nil
}
