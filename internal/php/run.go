package php

import (
	"context"
	"sync"
)

// Run keeps the processes until ctx ends, lets their jobs end (at most for
// Config.Grace) and returns when all is written or released.
func (p *Pool) Run(ctx context.Context) error {
	late, err := p.recover(ctx)
	p.note(err)
	if p.journal, err = openJournal(p.c.StateDir, p.c.Queue); err != nil {
		p.note(err)
		p.journal = new(journal)
	}
	var processes, claimer, settler, renewer sync.WaitGroup
	processes.Go(func() { p.recoverLate(ctx, late) })
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
