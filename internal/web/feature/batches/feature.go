package batches

import (
	"embed"
	"fmt"
	"net/http"
	"net/url"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

const (
	path  = "/admin/batches"
	needs = "batches of PHP jobs"
)

// BatchList is the API's list of batches.
type BatchList = ops.ListView[ops.BatchView]

type handlers struct{ port ops.Batches }

// Feature describes the feature; a nil port is one that is not configured.
func Feature(port ops.Batches) web.Feature {
	h := handlers{port}
	f := web.Feature{Name: "batches", Path: path, Group: web.Queue, Files: files,
		Chapters: map[string]string{
			"batches": "php-jobs#what-is-shown-of-them", "batch": "php-jobs#what-is-shown-of-them"}, Routes: h.routes()}
	if port == nil {
		f.Missing = []string{needs}
	}
	return f
}

func (h handlers) routes() []web.Route {
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/batches", Name: "batches.list", Summary: "Batches of PHP's jobs, " +
			"newest " +
			"first.", Scope: access.Read, Query: []string{"limit", "cursor"}, Answer: BatchList{}, Needs: needs,
			Handle: h.list},
		{Method: http.MethodGet, Path: "/api/v1/batches/:id", Name: "batches.show",
			Summary: "A batch of PHP's jobs with " +
				"the ids of its failed ones.", Scope: access.Read, Answer: ops.BatchView{}, Needs: needs,
			Handle: h.show},
		web.PageRoute(path, "pages.batches", "Batches of PHP's jobs.", access.Read, h.listPage),
		web.PageRoute(path+"/:id", "pages.batch", "A batch of PHP's jobs.", access.Read, h.batchPage).Requires(needs),
	}
}

func (h handlers) list(r *web.Request) error {
	p, err := r.ListPage()
	if err != nil {
		return err
	}
	list, err := h.port.Batches(r.Ctx(), p)
	if err != nil {
		return fmt.Errorf("listing batches: %w", err)
	}
	return r.JSON(http.StatusOK, ops.Listed(list, p, r.View().Batch))
}

func (h handlers) batch(r *web.Request) (ops.BatchView, error) {
	id, err := r.NameParam("id")
	if err != nil {
		return ops.BatchView{}, err
	}
	b, err := h.port.Batch(r.Ctx(), id)
	if err != nil {
		return ops.BatchView{}, fmt.Errorf("looking up a batch: %w", err)
	}
	return r.View().Batch(b), nil
}

func (h handlers) show(r *web.Request) error {
	view, err := h.batch(r)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, view)
}

type listData struct {
	Configured   bool
	Batches      []ops.BatchView
	Cursor, Next string
}

func (h handlers) listPage(r *web.Request) error {
	v := listData{Configured: h.port != nil, Cursor: redact.Clip(r.QueryParam("cursor"), 200)}
	if v.Configured {
		list, err := h.port.Batches(r.Ctx(), jobs.Page{Limit: web.PageRows, Cursor: v.Cursor})
		if err != nil {
			return fmt.Errorf("listing batches: %w", err)
		}
		v.Batches = ops.Each(list.Items, r.View().Batch)
		v.Next = web.NextPage(path, url.Values{}, list.Next)
	}
	return r.Show(web.PageView{Name: "batches", Live: web.LiveList, Data: v, Ready: true})
}

func (h handlers) batchPage(r *web.Request) error {
	view, err := h.batch(r)
	if err != nil {
		return err
	}
	return r.Show(web.PageView{Name: "batch", Live: web.LiveList, Data: view, Ready: true})
}
