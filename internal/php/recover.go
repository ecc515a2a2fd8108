package php

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// remains is the journal of a killed pool, and what of it may still be in the hands of
// a process that outlived the pool. The file is locked as long as it is open.
type remains struct {
	file   *os.File
	handed []pending
}

// recover releases what pools of this host had claimed ahead that were killed. It
// returns what must wait for the end of a process.
func (p *Pool) recover(ctx context.Context) (late []remains, err error) {
	files, err := filepath.Glob(filepath.Join(p.c.StateDir, journalName(p.c.Queue)))
	if err != nil || p.c.StateDir == "" {
		return nil, err
	}
	for _, name := range files {
		r, e := p.recoverOne(ctx, name)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("releasing what a killed process had claimed ahead: %w", e))
		}
		if r != nil {
			late = append(late, *r)
		}
	}
	return late, err
}

func (p *Pool) recoverOne(ctx context.Context, name string) (late *remains, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil // another pool was faster
	}
	defer func() {
		if late == nil {
			_ = f.Close()
		}
	}()
	if lockFile(f) != nil {
		return nil, nil // its pool lives
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil // as above
	}
	var unread, handed []pending
	for _, l := range readJournal(data) {
		if l.pid != 0 && lives(l.pid) {
			handed = append(handed, l)
		} else {
			unread = append(unread, l)
		}
	}
	if err := p.releaseRemains(ctx, unread); err != nil {
		return nil, err
	}
	if len(handed) > 0 {
		return &remains{f, handed}, nil
	}
	return nil, os.Remove(name)
}

// releaseRemains releases jobs of a killed pool, as far as they have the lease that it
// had: what a process ended meanwhile is not touched.
func (p *Pool) releaseRemains(ctx context.Context, of []pending) error {
	if len(of) == 0 {
		return nil
	}
	list := make([]Job, len(of))
	for i := range of {
		list[i] = Job{Claimed: jobs.Claimed{Lease: of[i].Lease}}
	}
	if err := p.c.Source.Release(ctx, list); err != nil {
		return err
	}
	p.c.Logger.Info("jobs released that a killed process had claimed ahead", "event", "php.recovered",
		"queue", p.c.Queue, "jobs", len(list))
	return nil
}

// recoverEvery is the time between two looks at the processes that outlived a pool.
const recoverEvery = 100 * time.Millisecond

// recoverLate releases the rest when the processes have ended that may have it. What is
// left when ctx ends is the next pool's.
func (p *Pool) recoverLate(ctx context.Context, late []remains) {
	for _, r := range late {
		p.note(p.recoverRest(ctx, r))
	}
}

func (p *Pool) recoverRest(ctx context.Context, r remains) error {
	defer r.file.Close()
	for _, h := range r.handed {
		for lives(h.pid) {
			if !wait(ctx, recoverEvery) {
				return nil
			}
		}
		if err := p.releaseRemains(ctx, []pending{h}); err != nil {
			return fmt.Errorf("releasing what a killed process was handing out: %w", err)
		}
	}
	if err := os.Remove(r.file.Name()); err != nil {
		return fmt.Errorf("removing the journal of a killed process: %w", err)
	}
	return nil
}
