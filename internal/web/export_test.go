package web

import "fmt"

// Changes is for tests of the whole table of routes.
func (r Route) Changes() bool { return r.changes() }

// CoreChapters are the places of the manual that pages of the core and refusals lead
// to, by what leads there.
func CoreChapters() map[string]string {
	all := map[string]string{"any other refusal": remedy(Problem{}),
		"a backup's place": remedy(Problem{cause: ErrUnavailable}),
		"a missing part":   remedy(*notConfigured("x"))}
	for name, place := range corePages {
		all["page "+name] = place
	}
	for status, place := range remedies {
		all[fmt.Sprint("status ", status)] = place
	}
	return all
}
