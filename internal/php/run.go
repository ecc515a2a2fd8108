package php

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Run keeps the processes until ctx ends, lets their jobs end (at most for
// Config.Grace) and returns when all is written or released.
func (p *Pool) Run(ctx context.Context) error {
	p.note(p.recover(ctx))
	var err error
	if p.journal, err = openJournal(p.c.StateDir, p.c.Queue); err != nil {
		p.note(err)
		p.journal = new(journal)
	}
	var processes, claimer, settler, renewer sync.WaitGroup
	processes.Go(func() { p.supervise(ctx) })
	processes.Go(func() { p.follow(ctx) })
	// The claimer outlives the processes, as it releases what they have not read.
	stopClaimer := make(chan struct{})
	claimer.Go(func() { p.claim(ctx, stopClaimer) })
	settler.Go(func() { p.settle(ctx) })
	renewals, stopRenewals := context.WithCancel(context.WithoutCancel(ctx))
	renewer.Go(func() { p.renew(renewals) })
	processes.Wait()
	close(stopClaimer)
	claimer.Wait()
	close(p.ends)
	settler.Wait()
	stopRenewals()
	renewer.Wait()
	return p.journal.remove()
}

// recover releases what pools of this host had claimed ahead that were killed.
func (p *Pool) recover(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(p.c.StateDir, journalName(p.c.Queue)))
	if err != nil || p.c.StateDir == "" {
		return err
	}
	for _, name := range files {
		if err := p.recoverOne(ctx, name); err != nil {
			return fmt.Errorf("releasing what a killed process had claimed ahead: %w", err)
		}
	}
	return nil
}

func (p *Pool) recoverOne(ctx context.Context, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return nil // another pool was faster
	}
	defer f.Close()
	if lockFile(f) != nil {
		return nil // its pool lives
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil // as above
	}
	var list []Job
	for _, l := range readJournal(data) {
		list = append(list, Job{Claimed: jobs.Claimed{Lease: l}})
	}
	if len(list) > 0 {
		if err := p.c.Source.Release(ctx, list); err != nil {
			return err
		}
		p.c.Logger.Info("jobs released that a killed process had claimed ahead", "event", "php.recovered",
			"queue", p.c.Queue, "jobs", len(list))
	}
	return os.Remove(name)
}
