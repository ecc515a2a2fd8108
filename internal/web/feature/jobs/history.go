package jobs

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

func (h handlers) listRuns(req *web.Request) error {
	f, err := runFilter(req)
	if err != nil {
		return err
	}
	return h.answerRuns(req, f)
}

func (h handlers) jobRuns(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	return h.answerRuns(req, jobs.Filter{UUIDs: []string{r.UUID}})
}

func (h handlers) answerRuns(req *web.Request, f jobs.Filter) error {
	p, err := req.ListPage()
	if err != nil {
		return err
	}
	list, err := req.History().Runs(req.Ctx(), f, p)
	if err != nil {
		return fmt.Errorf("listing runs: %w", err)
	}
	return req.JSON(http.StatusOK, ops.Listed(list, p, req.View().Run))
}

func (h handlers) jobLog(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	history := req.History()
	lines, err := history.Log(req.Ctx(), r.UUID, ops.MaxLogLines)
	if err != nil {
		return fmt.Errorf("reading the job's log: %w", err)
	}
	return req.JSON(http.StatusOK, ops.LogView{Lines: req.View().Lines(lines)})
}

func (h handlers) failureGroups(req *web.Request) error {
	f, err := req.Filter()
	if err != nil {
		return err
	}
	groups, err := req.History().Groups(req.Ctx(), f)
	if err != nil {
		return fmt.Errorf("grouping failed jobs: %w", err)
	}
	return req.JSON(http.StatusOK, ops.ItemsOf(groups, req.View().FailureGroup))
}

// ThroughputView is what ended in steps of time, oldest first.
type ThroughputView struct {
	StepMS int64            `json:"step_ms"`
	Items  []ThroughputItem `json:"items"`
}

// ThroughputItem is one step.
type ThroughputItem struct {
	At             time.Time `json:"at"`
	Completed      int64     `json:"completed"`       // attempts
	FailedAttempts int64     `json:"failed_attempts"` // those that are tried again included
	Failed         int64     `json:"failed"`          // jobs: failed attempts that ended one
	DurationMS     int64     `json:"duration_ms"`     // average
	WaitMS         int64     `json:"wait_ms"`         // average
}

// maxSteps bounds how many steps of time one answer has.
const maxSteps = 1000

func (h handlers) throughput(req *web.Request) error {
	now := req.Now()
	since, err := ops.ParseTime(cmp.Or(req.QueryParam("since"), "24h"), "since", now)
	if err != nil {
		return err
	}
	step, err := time.ParseDuration(cmp.Or(req.QueryParam("step"), "15m"))
	if err != nil || step < time.Second || now.Sub(since) > maxSteps*step {
		return web.RefuseField(http.StatusBadRequest, "step", "step is a length like 15m, from 1s, and gives %d "+
			"steps at most.", maxSteps)
	}
	width := step.Milliseconds()
	steps := now.UnixMilli()/width - since.UnixMilli()/width + 1
	list, err := req.History().Throughput(req.Ctx(), int(steps), step)
	if err != nil {
		return fmt.Errorf("counting runs: %w", err)
	}
	return req.JSON(http.StatusOK, ThroughputView{
		step.Milliseconds(), ops.Each(list, func(t jobs.Throughput) ThroughputItem {
			return ThroughputItem{ops.UTC(t.At), t.Completed, t.FailedAttempts, t.Failed, t.Duration.Milliseconds(),
				t.Wait.Milliseconds()}
		})})
}

func (h handlers) explainJob(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	snapshot, err := h.snapshot(req, r)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, req.View().Explanation(snapshot))
}

// snapshot collects what an explanation depends on.
func (h handlers) snapshot(req *web.Request, r jobs.Record) (explain.Snapshot, error) {
	e := ops.Explainer{Ledger: req.Ledger(), Registry: req.Registry(), Now: req.Now, Breakers: h.Breakers,
		JobsDisabled: h.Inline != nil, PHPQueues: h.PHPQueues}
	if h.Workers != nil {
		e.Workers = h.Workers.Workers
	}
	return e.Snapshot(req.Ctx(), r)
}
