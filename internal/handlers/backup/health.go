package backup

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// HealthLimits say when to warn.
type HealthLimits struct {
	MaxAge       time.Duration // of the newest good backup; default 26 h
	MaxUnproven  time.Duration // since the last proven restore; default 8 days
	MinBytes     int64         // an archive below it is suspicious; default 1 KiB
	MaxShrink    float64       // part by which a backup may shrink; default 0.5
	MaxGrowth    float64       // factor by which it may grow; default 3
	MaxRowsFewer float64       // part of all rows that may be gone; default 0.5
}

func (l HealthLimits) withDefaults() HealthLimits {
	if l.MaxAge <= 0 {
		l.MaxAge = 26 * time.Hour
	}
	if l.MaxUnproven <= 0 {
		l.MaxUnproven = 8 * 24 * time.Hour
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
	// Code is one of: unreachable, none, old, small, shrunk, grown, rows, table, unproven, failing.
	Code        string `json:"code"`
	Destination string `json:"destination,omitempty"`
	Text        string `json:"text"`
}

// Health is how the backups are.
type Health struct {
	Warnings   []Warning `json:"warnings"`
	Newest     *Stored   `json:"newest,omitempty"`      // good one
	LastProven time.Time `json:"last_proven,omitempty"` // zero when never
	ProvenID   string    `json:"proven_id,omitempty"`
	Checked    time.Time `json:"checked"`
}

// Health looks at what lies at every destination.
func (h *Handler) Health(ctx context.Context) (Health, error) {
	status := Health{Checked: h.c.Now().UTC(), Warnings: []Warning{}}
	for _, name := range h.Destinations() {
		all, err := h.List(ctx, name)
		if err != nil {
			status.warn("unreachable", name, "the backups at %s cannot all be listed: %v", name, err)
		}
		good := slices.DeleteFunc(all, func(b Stored) bool { return !b.good() })
		h.judge(&status, name, good)
		if len(good) > 0 && (status.Newest == nil || good[0].Started.After(status.Newest.Started)) {
			status.Newest = &good[0]
		}
	}
	if err := h.judgeHistory(ctx, &status); err != nil {
		return status, err
	}
	return status, nil
}

func (s *Health) warn(code, destination, format string, args ...any) {
	s.Warnings = append(s.Warnings, Warning{code, destination, fmt.Sprintf(format, args...)})
}

// judge looks at one destination's good backups, newest first.
func (h *Handler) judge(s *Health, name string, good []Stored) {
	limits := h.c.Options.Health
	if len(good) == 0 {
		s.warn("none", name, "there is no good backup at %s", name)
		return
	}
	newest := good[0]
	if age := s.Checked.Sub(newest.Started); age > limits.MaxAge {
		s.warn("old", name, "the newest good backup at %s is %s old", name, age.Round(time.Minute))
	}
	if newest.Size < limits.MinBytes {
		s.warn("small", name, "the newest backup at %s has %d bytes only", name, newest.Size)
	}
	i := slices.IndexFunc(good[1:], func(b Stored) bool { return b.Database == newest.Database && b.Files == newest.Files })
	if i >= 0 {
		limits.compare(s, name, good[1+i], newest)
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
	proofs, err := h.Proofs(ctx, "", 500)
	if err != nil {
		return err
	}
	for _, p := range proofs {
		if p.OK && p.Level == LevelRestored {
			s.LastProven, s.ProvenID = p.Finished, p.Backup
			break
		}
	}
	switch {
	case s.LastProven.IsZero():
		s.warn("unproven", "", "no backup was ever restored as a proof")
	case s.Checked.Sub(s.LastProven) > h.c.Options.Health.MaxUnproven:
		s.warn("unproven", "", "the last proven restore was on %s", s.LastProven.Format(time.DateTime))
	}
	if len(proofs) > 0 && !proofs[0].OK {
		s.warn("failing", proofs[0].Destination, "the last proof failed: backup %s at %s", proofs[0].Backup, proofs[0].Destination)
	}
	history, err := h.History(ctx, 1)
	if err != nil {
		return err
	}
	if len(history) > 0 && (history[0].Status == Failed || history[0].Status == Partial) {
		s.warn("failing", "", "the last backup is %s: %s", history[0].Status, history[0].Error)
	}
	return nil
}
