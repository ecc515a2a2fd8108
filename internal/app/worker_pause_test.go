package app

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// registry answers every heartbeat with the same control signals.
type registry struct{ signals jobs.ControlSignals }

func (r registry) Heartbeat(context.Context, jobs.WorkerInfo) (jobs.ControlSignals, error) {
	return r.signals, nil
}

func (r registry) Deregister(context.Context, string) error { return nil }

// While half of a site is restored no new job is claimed, and other signals still arrive.
func TestAWorkerPausesWhileASiteIsHalfRestored(t *testing.T) {
	half, fault := false, error(nil)
	p := pausing{registry{jobs.ControlSignals{Stop: true, Paused: []string{"mail"}}},
		func(context.Context) (bool, error) { return half, fault }, []string{"default", "mail"}}
	if o, err := p.Heartbeat(t.Context(), jobs.WorkerInfo{}); !slices.Equal(o.Paused, []string{"mail"}) || !o.Stop ||
		err != nil {
		t.Errorf("%+v, %v", o, err)
	}
	half = true
	if o, err := p.Heartbeat(t.Context(), jobs.WorkerInfo{}); !slices.Equal(o.Paused, []string{"default", "mail"}) ||
		!o.Stop || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
	half, fault = false, errors.New("no answer")
	if o, err := p.Heartbeat(t.Context(), jobs.WorkerInfo{}); err == nil || !o.Stop {
		t.Errorf("%+v, %v", o, err)
	}
}
