package mail

import (
	"context"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// delivery is one run of one mail.send job.
type delivery struct {
	h         *Handler
	job       jobs.Job
	letter    letter
	transport Transport
	driver    driver
	settings  cms.Settings
	template  string
	token     string
	// known is the ledger, as it was read and as this run changed it.
	known  map[string]Status
	last   map[string]outcome // of this run
	logged map[string]bool    // groups that stand in the CMS's mail log
	// unlimited lets it pass the rate limits: a person waits for it.
	unlimited bool
}

// note keeps what became of recipients in this run.
func (d *delivery) note(outcomes []outcome) {
	count := map[Status]int{}
	for _, o := range outcomes {
		d.known[o.to.Key()], d.last[o.to.Key()] = o.status, o
		count[o.status]++
	}
	if d.h.c.Counted == nil {
		return
	}
	for state, n := range count {
		d.h.c.Counted(state, n)
	}
}

// open says whether a recipient is still to be sent to.
func (d *delivery) open(a address.Address) bool {
	switch d.known[a.Key()] {
	case "", Deferred:
		return true
	case Unknown:
		return d.h.c.ResendUnknown
	}
	return false
}

func (d *delivery) pending(list []address.Address) []address.Address {
	return slices.DeleteFunc(slices.Clone(list), func(a address.Address) bool { return !d.open(a) })
}

func (d *delivery) allPending() []address.Address {
	var list []address.Address
	for _, g := range d.letter.groups() {
		list = append(list, d.pending(g.recipients)...)
	}
	return list
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
