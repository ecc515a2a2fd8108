package web

import (
	"context"
	"fmt"
)

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

// Listen lets a test decide when the server looks for live changes; look returns the
// events of one look for a listener that knows a state.
func (s *Server) Listen(known string) (look func(context.Context) ([]string, error), ok bool) {
	ch, _, ok := s.live.listen("test", known)
	return func(ctx context.Context) (all []string, err error) {
		err = s.live.look(ctx)
		for {
			select {
			case e := <-ch:
				all = append(all, e.Name+" "+string(e.Data))
			default:
				return all, err
			}
		}
	}, ok
}

// ForgetAnswers makes the next pages count again what a slow machine keeps for a while.
func (s *Server) ForgetAnswers() { s.answers.Forget() }
