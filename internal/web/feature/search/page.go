package search

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// The bounds of an answer.
const (
	maxQuery = 200
	maxTypes = 5 // whose jobs are looked for
	maxJobs  = 5
	maxTime  = 2 * time.Second
)

// found is what fits a query.
type found struct {
	Query   string
	Actions []web.Action
	Jobs    []ops.JobView
	Types   []string
	Pages   []web.MenuEntry
	Late    bool // jobs were not found in time
}

// Count is how many things there are.
func (f found) Count() int { return len(f.Actions) + len(f.Jobs) + len(f.Types) + len(f.Pages) }

func searchPage(req *web.Request) error {
	f := found{Query: redact.Clip(strings.TrimSpace(req.QueryParam("q")), maxQuery)}
	fits := fitting(f.Query)
	for _, a := range req.Actions() {
		if fits(a.Text) {
			if here := currentPage(req); here != "" {
				a.Back = here
			}
			f.Actions = append(f.Actions, a)
		}
	}
	for _, e := range req.MenuEntries() {
		if fits(req.Text("nav."+e.Name), e.Name) {
			f.Pages = append(f.Pages, e)
		}
	}
	if f.Query != "" {
		f.Types = slices.DeleteFunc(req.Registry().KnownTypes(), func(name string) bool { return !fits(name) })
		f.Types = f.Types[:min(len(f.Types), maxTypes)]
	}
	ctx, cancel := context.WithTimeout(req.Ctx(), maxTime)
	defer cancel()
	var err error
	f.Jobs, err = foundJobs(ctx, req, f.Query, f.Types)
	if f.Late = errors.Is(err, context.DeadlineExceeded) && req.Ctx().Err() == nil; err != nil && !f.Late {
		return err
	}
	return req.Show(web.PageView{Name: "search", Data: f, Ready: true})
}

// fitting says of words whether one of them has the query in it; an empty query fits all.
func fitting(query string) func(words ...string) bool {
	query = strings.ToLower(query)
	return func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), query) })
	}
}

// currentPage is the page that the palette was opened on; "" is none.
func currentPage(req *web.Request) string {
	u, err := url.Parse(req.Request().Header.Get("HX-Current-URL"))
	if err != nil || u.Host != req.Request().Host || !strings.HasPrefix(u.Path, "/admin") {
		return ""
	}
	return u.RequestURI()
}

// jobID is what a job can be called by: the number of its row, a UUID or a ULID.
var jobID = regexp.MustCompile(`^#?([0-9]{1,19}|[0-9a-fA-F-]{36}|[0-9A-Za-z]{26})$`)

// foundJobs are the job with an id, and the newest ones of types; without a
// query, the newest ones of all.
func foundJobs(ctx context.Context, req *web.Request, query string, types []string) ([]ops.JobView, error) {
	view := req.View()
	if id := jobID.FindStringSubmatch(query); id != nil {
		job, err := req.Ledger().Job(ctx, id[1])
		switch {
		case err == nil:
			return []ops.JobView{view.Job(job)}, nil
		case !errors.Is(err, jobs.ErrNotFound):
			return nil, fmt.Errorf("looking for the job %s: %w", id[1], err)
		}
	}
	if query != "" && len(types) == 0 {
		return nil, nil
	}
	list, err := req.Ledger().Jobs(ctx, jobs.Filter{Types: types}, jobs.Page{Limit: maxJobs, Uncounted: true})
	if err != nil {
		return nil, fmt.Errorf("looking for jobs of %q: %w", types, err)
	}
	return ops.Each(list.Items, view.Job), nil
}

func helpPage(req *web.Request) error {
	return req.Show(web.PageView{Name: "help", Data: req.MenuEntries(), Ready: true})
}
