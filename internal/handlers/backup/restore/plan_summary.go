package restore

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Summary implements jobs.Summarizer: what a restore would do. The boxes and flags
// that allow more are named by who shows it.
func (p Plan) Summary() (s phrase.Summary) {
	if len(p.Tables) > 0 {
		now, then := int64(0), int64(0)
		for _, t := range p.Tables {
			now, then = now+max(t.RowsNow, 0), then+max(t.RowsBackup, 0)
		}
		s.Say("Replaces %s {table|tables} of the database %s, with about %s {row|rows} now and %s in the backup.",
			len(p.Tables), p.Database, now, then)
	}
	phrase.Count(&s, len(p.Kept), "%s {table|tables} that the backup does not have {stays|stay}.")
	switch {
	case p.Unread:
		s.Say("Overwrites up to %s {file|files}; they could not be compared in time.", p.ChangedFiles)
	case p.NewFiles+p.ChangedFiles+p.SameFiles > 0:
		s.Say("Creates %s {file|files} and overwrites %s; %s {is|are} the same already.", p.NewFiles, p.ChangedFiles,
			p.SameFiles)
	}
	phrase.Count(&s, p.Executable, "A web server could execute %s of the backup's files.")
	phrase.List(&s, phrase.Columns("Table", "Rows now", "Rows in the backup"), p.Tables, func(t TableChange) []any {
		return []any{t.Name, rowsOf(t.RowsNow, "not there"), rowsOf(t.RowsBackup, "unknown")}
	})
	phrase.Lines(&s, phrase.Columns("File that is written"), p.Examples)
	phrase.Lines(&s, phrase.Columns("File that a web server could execute"), p.ExecutableNames)
	phrase.Lines(&s, phrase.Columns("Note"), p.Warnings)
	return s
}

func rowsOf(n int64, none string) any {
	if n < 0 {
		return none
	}
	return n
}

// Summary implements jobs.Summarizer: what Moment would do.
func (p MomentPlan) Summary() (s phrase.Summary) {
	shown := func(t time.Time) string { return t.UTC().Format(time.DateTime) }
	s.Say("The moment %s UTC is restored into the database %s: all is there that was committed in that second or "+
		"before.", shown(p.At), p.Database)
	s.Say("The backup %s of %s UTC at %s is loaded first.", p.Backup, shown(p.Snapshot), p.Destination)
	switch {
	case p.Uncounted:
		s.Say("Then the archived log is applied, of which %s are read. Its transactions could not be counted in time.",
			phrase.Size(p.Bytes))
	case p.Transactions == 0:
		s.Say("The archived log has no transaction between that backup and the moment.")
	default:
		s.Say("Then %s {transaction|transactions} of the archived log {is|are} applied, the last one of %s UTC.",
			p.Transactions, shown(p.Last))
	}
	switch {
	case !p.Next.IsZero():
		s.Say("The first transaction that is left out is of %s UTC.", shown(p.Next))
	case !p.Uncounted:
		s.Say("No later transaction is in the log.")
	}
	phrase.Count(&s, len(p.WithoutRows), "%s {table stays|tables stay} without rows, as backups leave them out.")
	if p.New {
		s.Say("The database %s is made for it; the site stays as it is.", p.Database)
	} else {
		s.Say("It replaces the site's tables at once. A backup of the present state is made first. Changes since " +
			"that moment are lost from the site; its files stay.")
	}
	phrase.Lines(&s, phrase.Columns("Note"), p.Warnings)
	phrase.Lines(&s, phrase.Columns("Note"), p.Notes)
	return s
}
