package jobs

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// Which columns the list of jobs shows is the browser's own matter, as theme and
// language are: a wide screen can show more.
const (
	columnsCookie = "cmsjobs_columns"
	columnsAge    = 365 * 24 * time.Hour
)

// columnChoice is a column that can be shown.
type columnChoice struct {
	Name  string
	Shown bool
}

// chosenColumns are the plain columns that the browser wants, and all there are.
func chosenColumns(req *web.Request) (shown []ops.JobColumn, all []columnChoice) {
	usual, more := ops.JobColumns(), ops.MoreJobColumns()
	wanted := func(name string) bool {
		return slices.ContainsFunc(usual, func(c ops.JobColumn) bool { return c.Name == name })
	}
	if cookie, err := req.Cookie(columnsCookie); err == nil {
		names := strings.Split(cookie.Value, ".")
		wanted = func(name string) bool { return slices.Contains(names, name) }
	}
	for _, c := range slices.Concat(usual, more) {
		all = append(all, columnChoice{c.Name, wanted(c.Name)})
		if wanted(c.Name) {
			shown = append(shown, c)
		}
	}
	return shown, all
}

// chooseColumns keeps which columns the browser wants.
func (h handlers) chooseColumns(req *web.Request) error {
	form, err := req.FormParams()
	if err != nil {
		return web.Refuse(http.StatusBadRequest, "The form cannot be read.")
	}
	names := []string{"-"} // none is a choice, too
	for _, c := range slices.Concat(ops.JobColumns(), ops.MoreJobColumns()) {
		if slices.Contains(form["columns"], c.Name) {
			names = append(names, c.Name)
		}
	}
	req.Keep(columnsCookie, strings.Join(names, "."), columnsAge)
	return req.Redirect(http.StatusSeeOther, req.BackTo("/admin/jobs"))
}
