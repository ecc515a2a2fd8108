package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// RepositoryFault names what is wrong with a repository.
type RepositoryFault string

// The faults of repositories.
const (
	RepositoryUnreadable RepositoryFault = "unreadable" // the place does not answer, or refuses
	RepositoryDamaged    RepositoryFault = "damaged"    // its bytes are not those that were written
	RepositoryLocked     RepositoryFault = "locked"     // none of the age identities here opens its files
	RepositoryHeld       RepositoryFault = "held"       // a lock is older than it holds
	RepositoryUnverified RepositoryFault = "unverified" // no verification for too long
)

// RepositoryProblem is a fault with what was seen: an error, the locks, or the days
// within which a verification is due.
type RepositoryProblem struct {
	Fault  RepositoryFault
	Detail string
}

// RepositoryState is how the repository at a destination stands.
type RepositoryState struct {
	Destination string
	// Exists is false until the first backup makes it.
	Exists  bool
	Backups int // records
	// Verified is when the newest good verification of one of its backups ended; zero
	// when never.
	Verified time.Time
	// NoKey says that its files are encrypted and that no identity is configured here.
	NoKey    bool
	Problems []RepositoryProblem
}

// Repositories looks at the repository of each destination that takes one, and changes
// nothing. Of each it reads the newest record and the beginning of its manifest.
func (h *Handler) Repositories(ctx context.Context) ([]RepositoryState, error) {
	var states []RepositoryState
	for _, name := range h.Destinations() {
		if _, own := h.c.Destinations[name].(*botble.Store); own {
			continue
		}
		s := RepositoryState{Destination: name}
		r, err := h.Repository(ctx, name, false)
		switch {
		case errors.Is(err, repository.ErrNoRepository):
			if h.c.Options.Form == InRepository {
				states = append(states, s)
			}
			continue
		case err == nil:
			s.Exists = true
			err = h.look(ctx, r, &s)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			s.fault(faultOf(err), "%v", err)
		}
		states = append(states, s)
	}
	return states, nil
}

func (s *RepositoryState) fault(f RepositoryFault, format string, args ...any) {
	s.Problems = append(s.Problems, RepositoryProblem{f, fmt.Sprintf(format, args...)})
}

func faultOf(err error) RepositoryFault {
	switch {
	case errors.Is(err, repository.ErrDamaged), errors.Is(err, storage.ErrNotFound):
		return RepositoryDamaged
	case errors.Is(err, repository.ErrLocked):
		return RepositoryLocked
	}
	return RepositoryUnreadable
}

// look looks at locks, at the newest record and its manifest, and at verifications.
func (h *Handler) look(ctx context.Context, r *repository.Repository, s *RepositoryState) error {
	held, err := r.Expired(ctx)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		s.fault(RepositoryHeld, "%s", strings.Join(held, ", "))
	}
	ids, err := r.List(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	s.Backups = len(ids)
	if err := h.lookAtVerifications(ctx, s); err != nil {
		return err
	}
	newest, err := r.Load(ctx, ids[len(ids)-1])
	if err != nil {
		return err
	}
	if s.NoKey = newest.Encrypted() && len(h.c.Options.Identities) == 0; s.NoKey {
		return nil
	}
	for _, err := range r.Entries(ctx, newest) {
		return err // the first shows whether it opens
	}
	return nil
}

func (h *Handler) lookAtVerifications(ctx context.Context, s *RepositoryState) error {
	all, err := h.List(ctx, s.Destination)
	if err != nil {
		return err
	}
	var first time.Time
	for _, b := range all {
		if b.Repository == nil {
			continue
		}
		if first.IsZero() || b.Started.Before(first) {
			first = b.Started
		}
		if v := b.Verification; v != nil && v.OK && v.At.After(s.Verified) {
			s.Verified = v.At
		}
	}
	limit := h.c.Options.Health.MaxUnverified
	since := s.Verified
	if since.IsZero() {
		since = first
	}
	if !since.IsZero() && h.c.Now().Sub(since) > limit {
		s.fault(RepositoryUnverified, "%d", int(limit.Hours()/24))
	}
	return nil
}

// Shortages says of each destination why the next backup would not fit; nothing of those
// where it does, and of those that do not tell their space.
func (h *Handler) Shortages(ctx context.Context) (map[string]error, error) {
	q := Request{Database: h.c.DSN != "", Files: len(h.c.Files) > 0}
	e, err := h.Estimate(ctx, q)
	if err != nil {
		return nil, err
	}
	short := map[string]error{}
	for _, name := range h.chosen(q) {
		here := e
		if h.c.Options.Form == InRepository {
			if here, err = h.need(ctx, name, e); err != nil {
				continue // Repositories says so
			}
		}
		if err := h.fits(name, here); err != nil {
			short[name] = err
		} else if err := h.checkQuota(ctx, name, here); err != nil {
			short[name] = err
		}
	}
	return short, nil
}
