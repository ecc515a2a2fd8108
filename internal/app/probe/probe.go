package probe

import (
	"context"
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Kind is a type that does nothing but what its payload says. It shows that
// enqueuing, working, failing and retrying go as they should on a site.
var Kind = jobs.Kind[Payload]{Name: "cmsjobs.probe", Policy: jobs.Policy{Backoff: jobs.Fixed(5 * time.Second)}}

// Payload says what a probe does.
type Payload struct {
	Sleep string `json:"sleep" example:"2s"` // how long it runs
	Fail  string `json:"fail"`               // the message that it fails with
}

// Validate refuses lengths that hold a slot for long.
func (p *Payload) Validate() error {
	if p.Sleep == "" {
		return nil
	}
	if d, err := time.ParseDuration(p.Sleep); err != nil || d < 0 || d > longestProbe {
		return phrase.Errorf("sleep must be a length of time up to %s, for example 2s", longestProbe)
	}
	return nil
}

// longestProbe is less than the type's time limit: a probe ends by itself.
const longestProbe = 4 * time.Minute

// Register adds the type for administrators; where rows is set, any row
// may be a probe.
func Register(r *jobs.Registry, book jobs.OrderBook, rows bool) {
	jobs.HandleInternal(r, jobs.Internal{Book: book, Maker: jobs.Administrators, Rows: rows}, Kind,
		func(ctx context.Context, j jobs.Job, p Payload) error {
			if d, err := time.ParseDuration(p.Sleep); err == nil && d > 0 {
				jobs.Logf(ctx, "sleeping %s", d)
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(d):
				}
			}
			if p.Fail != "" {
				return errors.New(p.Fail)
			}
			return jobs.SetResult(ctx, Result{j.Attempt})
		})
	jobs.Results[Result](r, Kind)
}

// Result is what a probe leaves.
type Result struct {
	Attempt int `json:"attempt"`
}

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	s.Say("The probe ended well at attempt %s.", r.Attempt)
	return s
}
