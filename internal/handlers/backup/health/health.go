package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
)

// Limits say when to warn.
type Limits struct {
	MaxAge        time.Duration // of the newest complete backup of each part; default 26 h
	MaxUnverified time.Duration // since the last verified restore; default 8 days
	MinBytes      int64         // an archive below it is suspicious; default 1 KiB
	MaxShrink     float64       // part by which a backup may shrink; default 0.5
	MaxGrowth     float64       // factor by which it may grow; default 3
	MaxRowsFewer  float64       // part of all rows that may be gone; default 0.5
}

func (l Limits) withDefaults() Limits {
	if l.MaxAge <= 0 {
		l.MaxAge = 26 * time.Hour
	}
	if l.MaxUnverified <= 0 {
		l.MaxUnverified = 8 * 24 * time.Hour
	}
	if l.MinBytes <= 0 {
		l.MinBytes = 1 << 10
	}
	if l.MaxShrink <= 0 {
		l.MaxShrink = 0.5
	}
	if l.MaxGrowth <= 0 {
		l.MaxGrowth = 3
	}
	if l.MaxRowsFewer <= 0 {
		l.MaxRowsFewer = 0.5
	}
	return l
}

// Warning is one thing that is wrong with the backups.
type Warning struct {
	// Code is one of: unreachable, none, old, small, shrunk, grown, rows, table,
	// unverified, failing, failed, untrusted, leftover.
	Code        string `json:"code"`
	Destination string `json:"destination,omitempty"`
	Text        string `json:"text"`
}

// Health is how the backups are.
type Health struct {
	Warnings     []Warning       `json:"warnings"`
	Newest       *catalog.Stored `json:"newest,omitempty"`        // complete one of database and files, else of either
	LastVerified time.Time       `json:"last_verified,omitempty"` // zero when never
	VerifiedID   string          `json:"verified_id,omitempty"`
	// LastChecked is when a backup's content was last read back well without a
	// restore, where there was none later; Note says why it was not restored.
	LastChecked time.Time `json:"last_checked,omitzero"`
	Note        string    `json:"note,omitempty"`
	Checked     time.Time `json:"checked"`
}

// part is what a site's backups are to hold.
type part struct {
	name string // for people
	in   func(catalog.Stored) bool
}

// parts are those that this installation can back up.
func (c *Checker) parts() (parts []part) {
	if c.config.Database {
		parts = append(parts, part{"the database", func(b catalog.Stored) bool { return b.Database }})
	}
	if c.config.Files {
		parts = append(parts, part{"the files", func(b catalog.Stored) bool { return b.Files }})
	}
	return parts
}

// Config is what a Checker needs.
type Config struct {
	Catalog   *catalog.Catalog
	Temporary *temporary.Keeper
	Limits    Limits
	// Database and Files say what this installation's backups are to hold.
	Database, Files bool
	Now             func() time.Time
}

// Checker judges the backups.
type Checker struct{ config Config }

// New makes a Checker. Limits that are zero get their defaults.
func New(config Config) *Checker {
	config.Limits = config.Limits.withDefaults()
	return &Checker{config}
}

// Health looks at what lies at every destination.
func (c *Checker) Health(ctx context.Context) (Health, error) {
	status := Health{Checked: c.config.Now().UTC(), Warnings: []Warning{}}
	for _, name := range c.config.Catalog.Destinations() {
		all, err := c.config.Catalog.List(ctx, name)
		if err != nil {
			status.warn("unreachable", name, "the backups at %s cannot all be listed: %v", name, err)
		}
		status.doubt(name, all)
		if err := c.judge(ctx, &status, name, all); err != nil {
			return status, err
		}
	}
	if err := c.judgeHistory(ctx, &status); err != nil {
		return status, err
	}
	return status, c.judgeLeftovers(ctx, &status)
}

func (s *Health) warn(code, destination, format string, args ...any) {
	s.Warnings = append(s.Warnings, Warning{code, destination, fmt.Sprintf(format, args...)})
}

// doubt names the copies that are not used: their verification failed, or nobody
// knows who made them.
func (s *Health) doubt(name string, all []catalog.Stored) {
	var failed, foreign []string
	for _, b := range all {
		if b.Status == manifest.Failed {
			failed = append(failed, b.ID)
		}
		if b.Origin.Foreign() {
			foreign = append(foreign, b.ID)
		}
	}
	if len(failed) > 0 {
		s.warn("failed", name, "the newest verification of %s at %s failed; restored only with --allow-failed: %s",
			english.Plural(len(failed), "backup", ""), name, first(failed, 3))
	}
	if len(foreign) > 0 {
		s.warn("untrusted", name, "of unknown origin, and restored only with --allow-failed: %s at %s: %s",
			english.Plural(len(foreign), "backup", ""), name, first(foreign, 3))
	}
}

// first are the first n of a list.
func first(list []string, n int) string {
	if len(list) > n {
		list = append(slices.Clone(list[:n]), "…")
	}
	return strings.Join(list, ", ")
}

// judge looks at one destination's usable backups, newest first.
func (c *Checker) judge(ctx context.Context, s *Health, name string, all []catalog.Stored) error {
	usable := slices.DeleteFunc(slices.Clone(all), func(b catalog.Stored) bool { return !c.config.Catalog.Usable(b) })
	s.note(usable)
	parts := c.parts()
	newest := make([]*catalog.Stored, len(parts))
	same := true
	for i, p := range parts {
		if at := slices.IndexFunc(usable, p.in); at >= 0 {
			newest[i] = &usable[at]
		}
		same = same && (newest[i] == newest[0])
	}
	for i, p := range parts {
		of := " of " + p.name
		if same {
			of = ""
		}
		c.judgePart(s, name, of, newest[i])
		if same {
			break
		}
	}
	return c.judgeSizes(ctx, s, name, usable)
}

// note remembers the newest one of all destinations, preferably of everything.
func (s *Health) note(usable []catalog.Stored) {
	for i := range usable {
		b := &usable[i]
		whole, had := b.Database && b.Files, s.Newest != nil && s.Newest.Database && s.Newest.Files
		if s.Newest == nil || whole && !had || whole == had && b.Started.After(s.Newest.Started) {
			s.Newest = b
		}
	}
}

func (c *Checker) judgePart(s *Health, name, of string, newest *catalog.Stored) {
	if newest == nil {
		s.warn("none", name, "there is no complete backup%s at %s", of, name)
	} else if age := s.Checked.Sub(newest.Started); age > c.config.Limits.MaxAge {
		s.warn("old", name, "the newest complete backup%s at %s is %s old", of, name, age.Round(time.Minute))
	}
}

// judgeSizes compares the newest backup with the one of its sort before it.
func (c *Checker) judgeSizes(ctx context.Context, s *Health, name string, usable []catalog.Stored) error {
	if len(usable) == 0 {
		return nil
	}
	newest := usable[0]
	c.config.Limits.small(s, name, newest)
	i := slices.IndexFunc(usable[1:], func(b catalog.Stored) bool {
		return b.Database == newest.Database &&
			b.Files == newest.Files
	})
	if i < 0 {
		return nil
	}
	before := usable[1+i]
	for _, b := range []*catalog.Stored{&newest, &before} { // a list leaves the tables out
		whole, err := c.config.Catalog.Full(ctx, *b)
		if err != nil {
			s.warn("unreachable", name, "the backup %s at %s cannot be looked at: %v", b.ID, name, err)
			return nil
		}
		*b = whole
	}
	c.config.Limits.compare(s, name, before, newest)
	return nil
}

func (l Limits) small(s *Health, name string, b catalog.Stored) {
	if b.Size < l.MinBytes {
		s.warn("small", name, "the newest backup at %s has %d bytes only", name, b.Size)
	}
}

// compare looks for sudden changes from one backup to the next of its sort.
func (l Limits) compare(s *Health, name string, before, now catalog.Stored) {
	switch was, is := float64(before.Size), float64(now.Size); {
	case is < was*(1-l.MaxShrink):
		s.warn("shrunk", name, "the newest backup at %s has %d bytes, the one before it had %d", name, now.Size,
			before.Size)
	case is > was*l.MaxGrowth:
		s.warn("grown", name, "the newest backup at %s has %d bytes, the one before it had %d", name, now.Size,
			before.Size)
	}
	if float64(now.Rows) < float64(before.Rows)*(1-l.MaxRowsFewer) {
		s.warn("rows", name, "the newest backup at %s has %d rows, the one before it had %d", name, now.Rows,
			before.Rows)
	}
	there := map[string]bool{}
	for _, t := range now.Tables {
		there[t.Name] = true
	}
	for _, t := range before.Tables {
		if !there[t.Name] {
			s.warn("table", name, "the table %s is not in the newest backup at %s, but was in the one before it",
				t.Name, name)
		}
	}
}

// judgeHistory looks at what our own tables remember.
func (c *Checker) judgeHistory(ctx context.Context, s *Health) error {
	verifications, err := c.config.Catalog.Verifications(ctx, "", 500)
	if err != nil {
		return err
	}
	for _, p := range verifications {
		if p.OK && p.Level == manifest.LevelRestored {
			s.LastVerified, s.VerifiedID = p.Finished, p.Backup
			break
		}
		if p.OK && p.Denied && s.LastChecked.IsZero() {
			s.LastChecked, s.Note = p.Finished, p.Note
		}
	}
	s.judgeVerifications(verifications, c.config.Limits.MaxUnverified)
	history, err := c.config.Catalog.History(ctx, 1)
	if err != nil || len(history) == 0 {
		return err
	}
	switch last := history[0]; last.Status {
	case manifest.Failed:
		s.warn("failing", "", "the last backup failed: %s", last.Error)
	case manifest.Partial:
		s.warn("failing", "", "the last backup is partial: %s", last.Error)
	}
	return nil
}

// judgeVerifications warns where none was good for longer than limit, and where
// the newest one was bad.
func (s *Health) judgeVerifications(newestFirst []manifest.Verification, limit time.Duration) {
	switch {
	case s.Checked.Sub(s.LastChecked) <= limit: // all that this account's rights allow
	case s.LastVerified.IsZero():
		s.warn("unverified", "", "no backup was ever verified by a restore")
	case s.Checked.Sub(s.LastVerified) > limit:
		s.warn("unverified", "", "the last verified restore was on %s", s.LastVerified.Format(time.DateTime))
	}
	if len(newestFirst) > 0 && !newestFirst[0].OK {
		s.warn("failing", newestFirst[0].Destination, "the last verification failed: backup %s at %s",
			newestFirst[0].Backup, newestFirst[0].Destination)
	}
}

// judgeLeftovers names what killed verifications and restores left.
func (c *Checker) judgeLeftovers(ctx context.Context, s *Health) error {
	names, err := c.config.Temporary.Leftovers(ctx)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		s.warn("leftover", "", "killed verifications or restores left %s or folders, which take space and hold the "+
			"site's data: %s "+
			"(the next backup removes them, or cmsjobs backup sweep)", english.Plural(len(names), "temporary database",
			""), first(names, 3))
	}
	return nil
}
