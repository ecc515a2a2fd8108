package health

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/web"
)

// ConditionList is what GET /api/v1/conditions answers.
type ConditionList struct {
	Items []web.Condition `json:"items"`
}

func (h handlers) listConditions(req *web.Request) error {
	list := h.Conditions(req.Ctx())
	if list == nil {
		list = []web.Condition{}
	}
	return req.JSON(http.StatusOK, ConditionList{list})
}

// ready answers 503 while a check or a failing condition says so. check=NAME
// asks for these alone, warnings included.
func (h handlers) ready(req *web.Request) error {
	answer := Health{Status: "ok", Version: req.Version()}
	asked := strings.FieldsFunc(req.QueryParam("check"), func(r rune) bool { return r == ',' })
	for _, name := range asked {
		if !slices.Contains(h.ConditionNames, name) && !slices.ContainsFunc(h.Ready, func(k Check) bool {
			return k.Name == name
		}) {
			return web.RefuseField(http.StatusBadRequest, "check", "There is no check %q. There are: %s.", name,
				strings.Join(h.ConditionNames, ", "))
		}
	}
	wanted := func(name string) bool { return len(asked) == 0 || slices.Contains(asked, name) }
	ctx, cancel := context.WithTimeout(req.Ctx(), readyTime)
	defer cancel()
	for _, name := range h.failing(ctx, req.Log()) {
		if wanted(name) {
			answer.Failing = append(answer.Failing, name)
		}
	}
	for _, x := range h.Conditions(ctx) {
		switch {
		case !x.Active || x.Elsewhere || !wanted(x.Name) || slices.Contains(answer.Failing, x.Name):
		case x.Severity == web.Failing || len(asked) > 0:
			answer.Failing = append(answer.Failing, x.Name)
		default:
			answer.Warnings = append(answer.Warnings, x.Name)
		}
	}
	if len(answer.Failing) > 0 {
		answer.Status = "unready"
		return req.JSON(http.StatusServiceUnavailable, answer)
	}
	return req.JSON(http.StatusOK, answer)
}
