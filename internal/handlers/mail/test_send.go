package mail

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// SendTest sends a test mail at once, past the queue and the limits, and says
// what the server answered.
func (h *Handler) SendTest(ctx context.Context, uuid, to string) (Result, error) {
	t, err := h.Transport(ctx)
	if err != nil {
		return Result{}, err
	}
	run := jobs.NewRun(h.c.Now)
	ctx = jobs.WithRun(ctx, run)
	p := SendPayload{To: Addresses{to}, Template: "test", Data: map[string]any{"driver": t.Driver, "host": t.Host, "at": h.c.Now().UTC().Format(time.DateTime)}}
	if err := p.Validate(); err != nil {
		return Result{}, err
	}
	d, err := h.delivery(ctx, jobs.Job{UUID: uuid, Type: Send.Name, Attempt: 1, MaxAttempts: 1, Data: Send.New(p).Data}, p)
	if err != nil {
		return Result{}, err
	}
	d.unlimited = true
	err = d.run(ctx, p)
	var r Result
	if raw, _ := run.Result(); raw != nil {
		err = errors.Join(err, json.Unmarshal(raw, &r))
	}
	return r, err
}
