package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// HealthLimits say when to warn.
type HealthLimits struct {
	MaxAge        time.Duration // of the newest complete backup of each part; default 26 h
	MaxUnverified time.Duration // since the last verified restore; default 8 days
	MinBytes      int64         // an archive below it is suspicious; default 1 KiB
	MaxShrink     float64       // part by which a backup may shrink; default 0.5
	MaxGrowth     float64       // factor by which it may grow; default 3
	MaxRowsFewer  float64       // part of all rows that may be gone; default 0.5
}

func (l HealthLimits) withDefaults() HealthLimits {
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
	Warnings     []Warning `json:"warnings"`
	Newest       *Stored   `json:"newest,omitempty"`        // complete one of database and files, else of either
	LastVerified time.Time `json:"last_verified,omitempty"` // zero when never
	VerifiedID   string    `json:"verified_id,omitempty"`
	Checked      time.Time `json:"checked"`
}

// part is what a site's backups are to hold.
type part struct {
	name string // for people
	in   func(Stored) bool
}

// parts are those that this installation can back up.
func (h *Handler) parts() (parts []part) {
	if h.c.DSN != "" {
		parts = append(parts, part{"the database", func(b Stored) bool { return b.Database }})
	}
	if len(h.c.Files) > 0 {
		parts = append(parts, part{"the files", func(b Stored) bool { return b.Files }})
	}
	return parts
}

// Health looks at what lies at every destination.
func (h *Handler) Health(ctx context.Context) (Health, error) {
	status := Health{Checked: h.c.Now().UTC(), Warnings: []Warning{}}
	for _, name := range h.Destinations() {
		all, err := h.List(ctx, name)
		if err != nil {
			status.warn("unreachable", name, "the backups at %s cannot all be listed: %v", name, err)
		}
		status.doubt(name, all)
		if err := h.judge(ctx, &status, name, all); err != nil {
			return status, err
		}
	}
	if err := h.judgeHistory(ctx, &status); err != nil {
		return status, err
	}
	return status, h.judgeLeftovers(ctx, &status)
}

func (s *Health) warn(code, destination, format string, args ...any) {
	s.Warnings = append(s.Warnings, Warning{code, destination, fmt.Sprintf(format, args...)})
}

// doubt names the copies that are not used: their verification failed, or nobody
// knows who made them.
func (s *Health) doubt(name string, all []Stored) {
	var failed, foreign []string
	for _, b := range all {
		if b.Status == Failed {
			failed = append(failed, b.ID)
		}
		if b.Origin.foreign() {
			foreign = append(foreign, b.ID)
		}
	}
	if len(failed) > 0 {
		s.warn("failed", name, "the newest verification of %s at %s failed; restored only with --allow-failed: %s", plural(len(failed), "backup"), name, first(failed, 3))
	}
	if len(foreign) > 0 {
		s.warn("untrusted", name, "of unknown origin, and restored only with --allow-failed: %s at %s: %s", plural(len(foreign), "backup"), name, first(foreign, 3))
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// first are the first n of a list.
func first(list []string, n int) string {
	if len(list) > n {
		list = append(slices.Clone(list[:n]), "…")
	}
	return strings.Join(list, ", ")
}

// judge looks at one destination's usable backups, newest first.
func (h *Handler) judge(ctx context.Context, s *Health, name string, all []Stored) error {
	usable := slices.DeleteFunc(slices.Clone(all), func(b Stored) bool { return !h.Usable(b) })
	s.note(usable)
	parts := h.parts()
	newest := make([]*Stored, len(parts))
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
		h.judgePart(s, name, of, newest[i])
		if same {
			break
		}
	}
	return h.judgeSizes(ctx, s, name, usable)
}

// note remembers the newest one of all destinations, preferably of everything.
func (s *Health) note(usable []Stored) {
	for i := range usable {
		b := &usable[i]
		whole, had := b.Database && b.Files, s.Newest != nil && s.Newest.Database && s.Newest.Files
		if s.Newest == nil || whole && !had || whole == had && b.Started.After(s.Newest.Started) {
			s.Newest = b
		}
	}
}

func (h *Handler) judgePart(s *Health, name, of string, newest *Stored) {
	if newest == nil {
		s.warn("none", name, "there is no complete backup%s at %s", of, name)
	} else if age := s.Checked.Sub(newest.Started); age > h.c.Options.Health.MaxAge {
		s.warn("old", name, "the newest complete backup%s at %s is %s old", of, name, age.Round(time.Minute))
	}
}

// judgeSizes compares the newest backup with the one of its sort before it.
func (h *Handler) judgeSizes(ctx context.Context, s *Health, name string, usable []Stored) error {
	if len(usable) == 0 {
		return nil
	}
	newest := usable[0]
	h.c.Options.Health.small(s, name, newest)
	i := slices.IndexFunc(usable[1:], func(b Stored) bool { return b.Database == newest.Database && b.Files == newest.Files })
	if i < 0 {
		return nil
	}
	before := usable[1+i]
	for _, b := range []*Stored{&newest, &before} { // a list leaves the tables out
		whole, err := h.full(ctx, *b)
		if err != nil {
			s.warn("unreachable", name, "the backup %s at %s cannot be looked at: %v", b.ID, name, err)
			return nil
		}
		*b = whole
	}
	h.c.Options.Health.compare(s, name, before, newest)
	return nil
}

func (l HealthLimits) small(s *Health, name string, b Stored) {
	if b.Size < l.MinBytes {
		s.warn("small", name, "the newest backup at %s has %d bytes only", name, b.Size)
	}
}

// compare looks for sudden changes from one backup to the next of its sort.
func (l HealthLimits) compare(s *Health, name string, before, now Stored) {
	switch was, is := float64(before.Size), float64(now.Size); {
	case is < was*(1-l.MaxShrink):
		s.warn("shrunk", name, "the newest backup at %s has %d bytes, the one before it had %d", name, now.Size, before.Size)
	case is > was*l.MaxGrowth:
		s.warn("grown", name, "the newest backup at %s has %d bytes, the one before it had %d", name, now.Size, before.Size)
	}
	if float64(now.Rows) < float64(before.Rows)*(1-l.MaxRowsFewer) {
		s.warn("rows", name, "the newest backup at %s has %d rows, the one before it had %d", name, now.Rows, before.Rows)
	}
	there := map[string]bool{}
	for _, t := range now.Tables {
		there[t.Name] = true
	}
	for _, t := range before.Tables {
		if !there[t.Name] {
			s.warn("table", name, "the table %s is not in the newest backup at %s, but was in the one before it", t.Name, name)
		}
	}
}

// judgeHistory looks at what our own tables remember.
func (h *Handler) judgeHistory(ctx context.Context, s *Health) error {
	verifications, err := h.Verifications(ctx, "", 500)
	if err != nil {
		return err
	}
	for _, p := range verifications {
		if p.OK && p.Level == LevelRestored {
			s.LastVerified, s.VerifiedID = p.Finished, p.Backup
			break
		}
	}
	switch {
	case s.LastVerified.IsZero():
		s.warn("unverified", "", "no backup was ever verified by a restore")
	case s.Checked.Sub(s.LastVerified) > h.c.Options.Health.MaxUnverified:
		s.warn("unverified", "", "the last verified restore was on %s", s.LastVerified.Format(time.DateTime))
	}
	if len(verifications) > 0 && !verifications[0].OK {
		s.warn("failing", verifications[0].Destination, "the last verification failed: backup %s at %s", verifications[0].Backup, verifications[0].Destination)
	}
	history, err := h.History(ctx, 1)
	if err != nil {
		return err
	}
	if len(history) > 0 && history[0].Status == Failed {
		s.warn("failing", "", "the last backup failed: %s", history[0].Error)
	}
	if len(history) > 0 && history[0].Status == Partial {
		s.warn("failing", "", "the last backup is partial: %s", history[0].Error)
	}
	return nil
}
