package web

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/summary"
)

// Planned is what an action would do; where it consists of several jobs, what the one
// of a type would do.
type Planned struct {
	Type string
	summary.View
}

// question is an action that waits for a yes.
type question struct {
	Text   string
	Action string // where the form goes
	Fields [][2]string
	Back   string
	// Typed must be written by hand to say yes; "" asks for a click only.
	Typed string
	Wrong bool // it was written wrongly, or a box that is required was not ticked
	Plan  []Planned
	Boxes []Box
}

// Box is one that a person ticks beside a question.
type Box struct {
	Name, Text string
	Required   bool
}

// ticked says whether all boxes that are required are.
func (q question) ticked(c echo.Context) bool {
	return !slices.ContainsFunc(q.Boxes, func(b Box) bool { return b.Required && c.FormValue(b.Name) != "yes" })
}

// sureOf says whether the person said yes; where not, it asks them.
func (s *Server) sureOf(c echo.Context, q question) (bool, error) {
	if c.FormValue("sure") == "yes" && (q.Typed == "" || c.FormValue("typed") == q.Typed) && q.ticked(c) {
		return true, nil
	}
	form, err := c.FormParams()
	if err != nil {
		return false, httpError(http.StatusBadRequest, "The form cannot be read.")
	}
	q.Action, q.Wrong, q.Back = c.Request().URL.RequestURI(), c.FormValue("sure") == "yes",
		local(c.FormValue("back"), "/admin")
	for name, values := range form {
		if name == formTokenField || name == "sure" || name == "typed" ||
			slices.ContainsFunc(q.Boxes, func(b Box) bool { return b.Name == name }) {
			continue
		}
		for _, value := range values {
			q.Fields = append(q.Fields, [2]string{name, value})
		}
	}
	setAuditTarget(c, "", "asked only")
	return false, s.write(c, http.StatusOK, "confirm", s.pageView(c, "", "confirm.title", q))
}
