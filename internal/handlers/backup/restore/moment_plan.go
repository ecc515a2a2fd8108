package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
)

// MomentPlan says what bringing the database to a moment would do.
type MomentPlan struct {
	At          time.Time `json:"at"`
	Backup      string    `json:"backup"`
	Destination string    `json:"destination"`
	Snapshot    time.Time `json:"snapshot"`      // of the backup
	Database    string    `json:"database"`      // the one that would be written to
	New         bool      `json:"new,omitempty"` // it is made for it
	From        string    `json:"from"`          // positions in the log
	To          string    `json:"to"`
	Segments    int       `json:"segments"`
	Bytes       int64     `json:"bytes"` // of the log, unpacked
	binlog.Result
	// Uncounted says that the transactions were not counted.
	Uncounted bool `json:"uncounted,omitempty"`
	// Until is the time of the last event that is archived.
	Until time.Time `json:"until"`
	// WithoutRows are tables that the backup has without their rows.
	WithoutRows []string `json:"without_rows,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
	Refused     []string `json:"refused,omitempty"`
	Token       string   `json:"token"`
}

// PlanMoment reads the log through, changes nothing, and says what Moment would do.
func (r *Restorer) PlanMoment(ctx context.Context, q MomentRequest) (MomentPlan, error) {
	p, target, err := r.outlineMoment(ctx, q)
	if err != nil {
		return p, err
	}
	server, err := r.databaseDSN(q, "")
	if err != nil {
		return p, err
	}
	p.Result, err = q.Log.Count(ctx, q.Chain, r.replayInto(q, server, q.expected(target), false))
	p.Uncounted = err != nil
	if p.Position != "" {
		p.To = p.Position
	}
	return p, err
}

// OutlineMoment is PlanMoment without a look at what the log holds.
func (r *Restorer) OutlineMoment(ctx context.Context, q MomentRequest) (MomentPlan, error) {
	p, _, err := r.outlineMoment(ctx, q)
	return p, err
}

// outlineMoment also says what the server is that would be written to.
func (r *Restorer) outlineMoment(ctx context.Context, q MomentRequest) (p MomentPlan, is string, err error) {
	p = MomentPlan{At: q.At, Backup: q.Backup.ID, Destination: q.Backup.Destination, Token: q.Token(),
		Snapshot: q.Backup.Log.Snapshot, From: q.Backup.Log.String(), Segments: len(q.Chain.Segments),
		Until: q.Chain.Until, Database: r.targetName(q.request()), New: q.IntoDSN != "",
		Uncounted: true}
	p.To = p.From
	if err := r.check(q.request()); err != nil {
		return p, "", err
	}
	for _, s := range q.Chain.Segments {
		p.Bytes += s.End - s.Start
	}
	server, err := r.databaseDSN(q, "")
	if err != nil {
		return p, "", err
	}
	target, err := portable.LookAt(ctx, server)
	if err != nil {
		return p, "", err
	}
	if needs := q.Backup.Needs; needs != nil {
		p.Warnings, p.Refused = needs.Against(target, nil)
		if needs.Foreign(target) {
			p.Refused = append(p.Refused, fmt.Sprintf("the log of %s cannot be replayed on %s", needs.Server,
				target.Server))
		}
	}
	var missing *binlog.MissingError
	switch err := q.Log.MayReplay(ctx, q.Chain, server, target.Server); {
	case errors.As(err, &missing):
		p.Refused = append(p.Refused, missing.What+" ("+missing.Fix+")")
	case err != nil:
		return p, "", err
	}
	for _, t := range q.expected(target.Server).Tables {
		if t.Empty {
			p.WithoutRows = append(p.WithoutRows, t.Name)
		}
	}
	return p, target.Server, nil
}

// expected is what the dump will be, as far as that is known before it is read.
func (q MomentRequest) expected(server string) dump.Summary {
	s := dump.Summary{Server: server}
	for _, t := range q.Backup.Tables {
		empty := q.Emptied != nil && q.Emptied(t.Name)
		s.Tables = append(s.Tables, dump.Table{Name: t.Name, Rows: t.Rows, Empty: empty})
	}
	return s
}

// replayInto says what the log is applied to.
func (r *Restorer) replayInto(q MomentRequest, dsn string, loaded dump.Summary, keepDefiners bool) binlog.Target {
	site := ""
	if c, err := mysql.ParseDSN(r.config.DSN); err == nil {
		site = c.DBName
	}
	if loaded.Database != "" {
		site = loaded.Database
	}
	return binlog.Target{DSN: dsn, Schema: site, Dump: loaded, At: q.At, DropDefiners: !keepDefiners}
}
