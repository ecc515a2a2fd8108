package queues

import (
	"context"
	"embed"
	"fmt"
	"net/http"
	"net/url"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// What an installation may lack.
const (
	needsWorkers = "list of workers"
	needsQueues  = "control of queues"
)

// The lists of the API.
type (
	QueueList  = ops.Items[ops.QueueView]
	WorkerList = ops.Items[ops.WorkerView]
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature; nil ports of c are not configured.
func Feature(c ops.Control) web.Feature {
	h := handlers{c}
	f := web.Feature{Name: "queues", Path: "/admin/queues", Also: []web.MenuEntry{
		{Name: "workers", Path: "/admin/workers"}}, Group: web.Queue, Files: files,
		Chapters: map[string]string{
			"queues": "admin#queues-and-workers", "workers": "admin#queues-and-workers"}, Counts: h.counts,
		Actions: h.actions,
		Routes:  append(h.queueRoutes(), h.pageRoutes()...)}
	if c.Workers == nil {
		f.Missing = append(f.Missing, needsWorkers)
	}
	if c.Queues == nil {
		f.Missing = append(f.Missing, needsQueues)
	}
	return f
}

// counts are the live workers.
func (h handlers) counts(ctx context.Context, _ web.Config, _ *answers.Cache) ([]web.Count, error) {
	if h.Workers == nil {
		return nil, nil
	}
	list, err := h.Workers.Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing workers: %w", err)
	}
	n := web.Count{Path: "/admin/workers", Key: "nav.count.workers"}
	for _, w := range list {
		if w.Alive {
			n.N++
		}
	}
	return []web.Count{n}, nil
}

// actionQueues bounds how many queues can be paused from any page.
const actionQueues = 10

func (h handlers) actions(req *web.Request) []web.Action {
	if h.Queues == nil {
		return nil
	}
	stats, err := req.Stats()
	if err != nil {
		return nil // the page of queues says why
	}
	var all []web.Action
	undoable := req.MayWork() == nil
	for _, q := range stats.Queues[:min(len(stats.Queues), actionQueues)] {
		path := "/admin/queues/" + url.PathEscape(q.Queue)
		a := web.Action{Text: req.Text("action.pause", q.Queue), Icon: "pause", Path: path + "/pause", Asks: !undoable}
		if q.Paused {
			a = web.Action{Text: req.Text("action.continue", q.Queue), Icon: "play", Path: path + "/continue"}
		}
		a.Back, a.Scope = "/admin/queues", access.Operate
		all = append(all, a)
	}
	return all
}

func (h handlers) pageRoutes() []web.Route {
	const read, operate = access.Read, access.Operate
	return []web.Route{
		web.PageRoute("/admin/queues", "pages.queues", "Queues.", read, h.queuesPage),
		web.FormRoute("/admin/queues/:name/pause", "queues.pause", "Pause a queue.", operate, h.pauseByForm).Requires(
			needsQueues),
		web.FormRoute("/admin/queues/:name/continue", "queues.continue", "Continue a queue.", operate,
			h.continueByForm).Requires(needsQueues),
		web.PageRoute("/admin/workers", "pages.workers", "Workers.", read, h.workersPage),
		web.FormRoute("/admin/workers/:id/stop", "workers.stop", "Stop a worker.", operate, h.stopByForm).Requires(
			needsWorkers),
		web.FormRoute("/admin/workers/:id/scale", "workers.scale", "Change the slots of a worker.", operate,
			h.scaleByForm).Requires(needsWorkers),
		web.FormRoute("/admin/workers/scale", "workers.scaleAll", "Change the slots of all workers.", operate,
			h.scaleAllByForm).Requires(needsWorkers),
		web.FormRoute("/admin/workers/restart", "workers.restart", "Restart all workers.", operate,
			h.restartByForm).Requires(needsWorkers),
	}
}

func (h handlers) queueRoutes() []web.Route {
	const get, post = http.MethodGet, http.MethodPost
	return []web.Route{
		{Method: get, Path: "/api/v1/queues", Name: "queues.list", Summary: "Queues with their depth, oldest job and " +
			"workers.", Scope: access.Read, Answer: QueueList{}, Handle: h.listQueues},
		{Method: post, Path: "/api/v1/queues/:name/pause", Name: "queues.pause", Summary: "Let no worker take jobs " +
			"from a queue. force does so for a name that no job, worker or setting has.", Scope: access.Operate,
			Query: []string{"force"}, Answer: web.Affected{}, Needs: needsQueues, Handle: h.pauseQueue},
		{Method: post, Path: "/api/v1/queues/:name/continue", Name: "queues.continue",
			Summary: "Let workers take jobs from a queue again.", Scope: access.Operate, Answer: web.Affected{},
			Needs: needsQueues, Handle: h.continueQueue},
		{Method: get, Path: "/api/v1/workers", Name: "workers.list", Summary: "Workers and what they run.",
			Scope: access.Read, Answer: WorkerList{}, Needs: needsWorkers, Handle: h.listWorkers},
		{Method: post, Path: "/api/v1/workers/:id/stop", Name: "workers.stop", Summary: "Make a worker finish what " +
			"it runs and exit.", Scope: access.Operate, Answer: web.Affected{}, Needs: needsWorkers,
			Handle: h.stopWorker},
		{Method: post, Path: "/api/v1/workers/:id/scale", Name: "workers.scale", Summary: "Change how many jobs a " +
			"worker runs at once, for as long as it lives.", Scope: access.Operate, Body: SlotsChange{},
			Answer: web.Affected{}, Needs: needsWorkers, Handle: h.scaleWorker},
		{Method: post, Path: "/api/v1/workers/scale", Name: "workers.scaleAll", Summary: "Change how many jobs each " +
			"worker runs at once, also of workers that start later.", Scope: access.Operate, Body: SlotsChange{},
			Answer: web.Affected{}, Needs: needsWorkers, Handle: h.scaleWorkers},
		{Method: post, Path: "/api/v1/workers/restart", Name: "workers.restart", Summary: "Make all workers finish " +
			"what they run and exit; their supervisor starts them again.", Scope: access.Operate,
			Answer: web.Affected{}, Needs: needsWorkers, Handle: h.restartWorkers},
	}
}
