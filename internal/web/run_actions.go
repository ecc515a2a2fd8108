package web

import (
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/summary"
)

// RunActions is what a page offers to start, and what it started. Data of pages
// embed it.
type RunActions struct {
	Tracked *Tracked // started here: shown until its end
	Types   []string // of the offered ones, those that can run here
}

// Tracked is a job that a page shows, and its result in words.
type Tracked struct {
	ops.JobView
	Said summary.View
}

// Can says whether a type can be started here.
func (v RunActions) Can(jobType string) bool { return slices.Contains(v.Types, jobType) }

// RunActions finds out which types a page can start, and follows the one that it
// started; live is for [PageView].
func (r *Request) RunActions(jobTypes ...string) (v RunActions, live string) {
	v.Types = slices.DeleteFunc(jobTypes, func(k string) bool { return !r.Known(k) })
	v.Tracked, live = r.tracked()
	return v, live
}

// Cleaners are the types that take something away when a button starts them.
func Cleaners() []string {
	return []string{"cache.clear", "cache.clearExpired", "logs.cleanup", "queue.clean", "maintenance.cleanup"}
}

// tracked is a job that a page shows while it runs: its start, progress and end.
func (r *Request) tracked() (*Tracked, string) {
	id := r.QueryParam("job")
	if id == "" || len(id) > 64 {
		return nil, ""
	}
	job, err := r.Ledger().Job(r.Ctx(), id)
	if err != nil {
		return nil, "" // gone: the page is whole without it
	}
	v := Tracked{JobView: r.View().Job(job)}
	v.Said = summary.Of(r.Printer(), r.Registry(), v.Type, v.Result)
	switch {
	case job.Status == jobs.StatusQueued || job.Status == jobs.StatusProcessing:
		return &v, LiveJob
	case r.Now().Sub(job.EndedAt) < 3*time.Second:
		r.server.answers.Expire() // what the page shows has changed
		return &v, LiveJob        // once more after its end, as its results come to lie
	}
	return &v, ""
}

// Action is one thing that a person can start from any page. Who may do it is
// checked where its form arrives; lists show it only to those who may.
type Action struct {
	Text, Icon string
	Path       string // where its form goes; of a link: where it leads
	Link       bool
	Fields     [][2]string
	Back       string // the page that shows what came of it
	Scope      access.Scope
	// Type is that of the job that it starts; "" starts none.
	Type string
	// Asks says that the person is asked before anything is done.
	Asks bool
}

// StartAction is an action that starts a job, as the form /admin/start does.
func StartAction(text, icon, back, jobType, payload string) Action {
	fields := [][2]string{{"type", jobType}, {"stay", "yes"}}
	if payload != "" {
		fields = append(fields, [2]string{"payload", payload})
	}
	return Action{Text: text, Icon: icon, Path: "/admin/start", Fields: fields, Back: back, Scope: access.Enqueue,
		Type: jobType, Asks: slices.Contains(Cleaners(), jobType)}
}

// Actions are what the caller may start from any page, of all features.
func (r *Request) Actions() []Action {
	var all []Action
	for _, f := range r.Features() {
		if f.Actions != nil {
			all = append(all, f.Actions(r)...)
		}
	}
	return slices.DeleteFunc(all, func(a Action) bool {
		return !r.May(a.Scope) || a.Type != "" && (!r.Known(a.Type) || r.MayRunType(a.Type) != nil)
	})
}

// MenuEntries are the pages that the menu has for the caller.
func (r *Request) MenuEntries() []MenuEntry {
	all := append(menu(r.Features(), Queue), menu(r.Features(), Site)...)
	if r.May(access.Admin) {
		all = append(all, menu(r.Features(), Administration)...)
	}
	return all
}
