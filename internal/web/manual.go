package web

import (
	"errors"
	"maps"
	"net/http"
	"strings"
)

// ManualPath is where the program serves its manual; APIPage is the description of
// the API for people.
const (
	ManualPath = "/docs"
	APIPage    = "/api/docs"
)

// corePages are the chapters of the pages that belong to no feature.
var corePages = map[string]string{"signin": "admin#signing-in", "confirm": "admin#confirmation",
	"api": "api"}

// chapters are the places of the manual that explain pages, where it is served.
func chapters(features []Feature) map[string]string {
	all, served := maps.Clone(corePages), false
	for _, f := range features {
		maps.Copy(all, f.Chapters)
		for _, r := range f.Routes {
			served = served || r.Path == ManualPath
		}
	}
	if !served {
		return nil
	}
	return all
}

// remedies are the places of the manual that say what to do about a refusal.
var remedies = map[int]string{
	http.StatusForbidden:             "api#authorization",
	http.StatusNotFound:              "admin#pages",
	http.StatusConflict:              "admin#jobs",
	http.StatusRequestTimeout:        "operating#what-to-do-when-",
	http.StatusRequestEntityTooLarge: "jobs",
	http.StatusUnprocessableEntity:   "jobs",
	http.StatusTooManyRequests:       "operating#sign-in-fails-with-429",
	http.StatusInternalServerError:   "logging",
	http.StatusServiceUnavailable:    "operating#the-database-does-not-answer-database_down",
}

// remedy is the place of the manual that helps with a problem.
func remedy(p Problem) string {
	switch {
	case errors.Is(p.cause, ErrUnavailable):
		return "backup#places"
	case p.Status == http.StatusNotFound && strings.HasPrefix(p.form, "This installation has no"):
		return "settings"
	}
	if place := remedies[p.Status]; place != "" {
		return place
	}
	return "operating#what-to-do-when-"
}

// ConditionChapter is the place of the manual about a condition.
func ConditionChapter(name string) string { return "operating#" + name }
