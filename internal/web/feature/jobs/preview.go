package jobs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/summary"
)

// previewTime is how long a person may wait for it.
const previewTime = 3 * time.Second

// maxPreviewed bounds how many jobs that follow each other are asked.
const maxPreviewed = 10

// dryRunPreview runs a type that knows dryRun, and what follows it, here and now
// without doing anything, and says what they would do. whole is false when not all of
// it could be said in time.
func dryRunPreview(req *web.Request, jobType string, payload json.RawMessage) (plan []web.Planned, whole bool) {
	ctx, cancel := context.WithTimeout(req.Ctx(), previewTime)
	defer cancel()
	dry := inlineExecutor{req.Registry(), req.Now, func(context.Context, jobs.Spec, jobs.Settlement) {}}
	queue := []jobs.Spec{{Type: jobType, Data: payload}}
	for asked := 0; len(queue) > 0 && asked < maxPreviewed; asked++ {
		data, err := withDryRun(queue[0].Data)
		if err != nil {
			return nil, false
		}
		queue[0].Data = data
		result, next, err := dry.one(ctx, queue[0])
		if err != nil {
			req.Log().Info("preview of a job failed", "event", "web.preview_failed",
				"type", queue[0].Type, "error", err)
			return plan, false
		}
		view := summary.Of(req.Printer(), req.Registry(), queue[0].Type, req.View().Result(queue[0].Type, result))
		if part := (web.Planned{Type: queue[0].Type, View: view}); !part.Empty() && len(next) == 0 {
			plan = append(plan, part) // of a type that only makes others run, these say what they do
		}
		queue = append(queue[1:], next...)
	}
	if len(plan) == 1 {
		plan[0].Type = "" // that is what was asked for
	}
	return plan, len(queue) == 0
}

// withDryRun sets dryRun in a payload.
func withDryRun(payload json.RawMessage) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(payload) > 0 {
		if err := json.Unmarshal(payload, &fields); err != nil {
			return nil, err
		}
	}
	fields["dryRun"] = json.RawMessage("true")
	return json.Marshal(fields)
}
