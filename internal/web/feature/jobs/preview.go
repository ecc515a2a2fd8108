package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// previewTime is how long a person may wait for it.
const previewTime = 3 * time.Second

// maxPreviewed bounds how many jobs that follow each other are asked.
const maxPreviewed = 10

// dryRunPreview runs a type that knows dryRun, and what follows it, here and now
// without doing anything, and says what they would remove. whole is false when
// not all of it could be counted in time.
func dryRunPreview(req *web.Request, jobType string, payload json.RawMessage) (facts []web.Fact, whole bool) {
	ctx, cancel := context.WithTimeout(req.Ctx(), previewTime)
	defer cancel()
	dry := inlineExecutor{req.Registry(), req.Now, func(context.Context, jobs.Spec, jobs.Settlement) {}}
	queue := []jobs.Spec{{Type: jobType, Data: payload}}
	counts := map[string]int64{}
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
			return said(req.Printer(), counts), false
		}
		var found map[string]any
		if json.Unmarshal(result, &found) == nil {
			addCounts(counts, "", found)
		}
		queue = append(queue[1:], next...)
	}
	return said(req.Printer(), counts), len(queue) == 0
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

// addCounts collects the figures of a result, those that lie deeper too.
func addCounts(counts map[string]int64, prefix string, result map[string]any) {
	for name, value := range result {
		switch v := value.(type) {
		case float64:
			counts[prefix+name] += int64(v)
		case map[string]any:
			addCounts(counts, prefix+name+".", v)
		}
	}
}

// said puts figures into words, in the order of their names; zeros say nothing.
func said(lang locale.Printer, counts map[string]int64) []web.Fact {
	var facts []web.Fact
	for name, n := range counts {
		if n == 0 {
			continue
		}
		table, inTable := strings.CutPrefix(name, "rows.")
		switch {
		case inTable:
			facts = append(facts, web.Fact{Name: lang.Text("would.table", table), Value: format.Number(n)})
		case name == "bytes":
			facts = append(facts, web.Fact{Name: lang.Text("would.bytes"), Value: format.Bytes(n)})
		default:
			facts = append(facts, web.Fact{Name: lang.Name("would.", name), Value: format.Number(n)})
		}
	}
	slices.SortFunc(facts, func(a, b web.Fact) int { return strings.Compare(a.Name, b.Name) })
	return facts
}
