package conditions

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// New checks c and returns an Evaluator.
func New(c Config) (*Evaluator, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	for _, name := range c.Off {
		if _, ok := find(name); !ok {
			return nil, fmt.Errorf("there is no condition %q", name)
		}
	}
	return &Evaluator{c: c, began: c.Now(), slow: map[string]reading{}, untold: map[string]*untold{},
		unwritten: map[string]bool{}}, nil
}

const (
	// evaluationTime bounds one evaluation.
	evaluationTime = 10 * time.Second
	// fresh is how long an evaluation answers questions.
	fresh = 3 * time.Second
)

// Latest is the last evaluation if it is not older than 3 seconds, or else a
// new one: any number of callers cost one evaluation.
func (e *Evaluator) Latest(ctx context.Context) []State {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.at.IsZero() && e.c.Now().Sub(e.at) < fresh {
		return slices.Clone(e.last)
	}
	return e.evaluate(ctx)
}

// Evaluate measures all conditions now.
func (e *Evaluator) Evaluate(ctx context.Context) []State {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.evaluate(ctx)
}

func (e *Evaluator) evaluate(ctx context.Context) []State {
	ctx, cancel := context.WithTimeout(ctx, evaluationTime)
	defer cancel()
	l := &look{Evaluator: e, slow: e.c.Process == nil || e.rounds%slowRounds == 0, readings: map[string]reading{}}
	e.rounds++
	l.snapshot = e.readSnapshot(ctx)
	l.measure(ctx)
	e.deserted = false
	if e.c.Pinger != nil && l.down == nil {
		e.deserted = l.unattended(ctx) && len(l.workers) > 0
	}
	if ctx.Err() != nil && l.rowsErr == nil {
		l.rowsErr = ctx.Err()
	}
	var states []State
	for _, d := range List() {
		d.Limit = e.limit(d.Name)
		r, measured := l.readings[d.Name]
		if d.Slow && measured {
			e.slow[d.Name] = r
		} else if d.Slow { // an old reading shows that it applies, and changes nothing
			if r, measured = e.slow[d.Name]; measured && l.rows[d.Name] != nil {
				r = reading{old: true}
			}
		}
		if !measured {
			continue
		}
		states = append(states, e.settle(ctx, l, d, r))
	}
	e.last, e.at = states, e.c.Now()
	return slices.Clone(states)
}

// settle makes a condition's state of what was measured and what is written
// down, and writes a change down.
func (e *Evaluator) settle(ctx context.Context, l *look, d Definition, r reading) State {
	s := State{Definition: d, Active: r.holds, Here: true, Detail: r.detail, Err: r.err}
	row := l.rows[d.Name]
	if row == nil || l.rowsErr != nil { // nothing is written down, or it cannot be read
		if r.err == nil {
			s.Since = e.direct(d, r)
		}
		return s
	}
	if r.err != nil || r.old {
		s.Active, s.Since, s.Detail = row.Active, row.changed(), row.Detail
		return s
	}
	if d.Lasting {
		s.Active = e.lasts(ctx, l, d, r, row)
	}
	if e.c.Process != nil {
		e.write(ctx, l, d, s, row)
	}
	s.Since = row.changed()
	if !s.Active && d.Local && row.Active && row.fresh(l.now, e.c.Every) && row.SeenBy != e.id() {
		s.Active, s.Here, s.Detail = true, false, row.Detail
	}
	return s
}

// Run evaluates in each interval until ctx ends.
func (e *Evaluator) Run(ctx context.Context) error {
	tick := time.NewTicker(e.c.Every)
	defer tick.Stop()
	for {
		e.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round evaluates once, tells the external monitor and delivers what changed.
func (e *Evaluator) round(ctx context.Context) {
	states := e.Evaluate(ctx)
	if e.c.Pinger != nil && ctx.Err() == nil {
		if err := e.c.Pinger.call(ctx, e, states); err != nil && ctx.Err() == nil {
			e.c.Logger.Warn("external monitor not reachable", "event", "monitor.ping_failed", "error", err)
		}
	}
	e.deliver(context.WithoutCancel(ctx))
}
