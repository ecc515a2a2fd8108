package jobs

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/saved"
)

// lists are those that filters can be saved for.
var lists = []string{"jobs", "failed", "runs"}

// savedList is the list that a form is about.
func savedList(req *web.Request) (string, error) {
	list := req.FormValue("list")
	if !slices.Contains(lists, list) {
		return "", web.RefuseField(http.StatusUnprocessableEntity, "list", "The list is jobs, failed or runs, not %q.",
			redact.Clip(list, 40))
	}
	return list, nil
}

// saveFilter keeps a filter under a name for the caller.
func (h handlers) saveFilter(req *web.Request) error {
	list, err := savedList(req)
	if err != nil {
		return err
	}
	if h.Saved == nil {
		return web.NotConfigured("saved filters")
	}
	query, err := savedQuery(req, list)
	if err != nil {
		return err
	}
	f := saved.Filter{List: list, Name: strings.TrimSpace(req.FormValue("name")), Query: query}
	req.Audit(list, redact.Clip(f.Name, saved.MaxName))
	err = h.Saved.Save(req.Ctx(), req.Caller().Name, f)
	switch {
	case errors.Is(err, saved.ErrFull):
		return web.Refuse(http.StatusConflict, "You have saved %d filters: that is as many as may be. "+
			"Delete one first.", saved.Most)
	case errors.Is(err, jobs.ErrInvalid):
		return web.RefuseField(http.StatusUnprocessableEntity, "name", "A saved filter needs a name of 1 to %d "+
			"characters, and its conditions may not be too long.", saved.MaxName)
	case err != nil:
		return err
	}
	return req.Back(filterBar{List: list}.at(query), "filter.saved", f.Name)
}

// savedQuery is the filter of a form in the one way to write it; one that cannot be
// read is not kept.
func savedQuery(req *web.Request, list string) (string, error) {
	q, err := url.ParseQuery(req.FormValue("query"))
	if err != nil {
		return "", web.RefuseField(http.StatusUnprocessableEntity, "query", "The filter cannot be read.")
	}
	f := ops.FilterOf(q)
	if _, err := f.Parse(req.Now()); err != nil {
		return "", err
	}
	b := filterBar{List: list}
	if list == "runs" {
		b.Outcome = redact.Clip(q.Get("outcome"), 20)
	}
	if f.Empty() && b.Outcome == "" {
		return "", web.RefuseField(http.StatusUnprocessableEntity, "query",
			"Set a filter first: an empty one is not saved.")
	}
	return b.query(f), nil
}

// deleteFilter takes one of the caller's filters away.
func (h handlers) deleteFilter(req *web.Request) error {
	list, err := savedList(req)
	if err != nil {
		return err
	}
	if h.Saved == nil {
		return web.NotConfigured("saved filters")
	}
	name := redact.Clip(req.FormValue("name"), 4*saved.MaxName)
	req.Audit(list, name)
	f, err := h.Saved.Delete(req.Ctx(), req.Caller().Name, list, name)
	if err != nil {
		return err
	}
	return req.BackUndoable(req.BackTo(filterBar{List: list}.Path()), web.Undo{Path: "/admin/filters",
		Fields: [][2]string{{"list", list}, {"name", f.Name}, {"query", f.Query}}}, "filter.deleted", f.Name)
}
