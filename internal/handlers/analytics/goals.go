package analytics

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Goal is what a visit may reach: a page, or an event.
type Goal struct {
	Name string
	// Path is the page's; * stands for any characters, slashes too.
	Path string
	// Event is the event's name, where Path is "".
	Event string
}

// goal is one that can be compared with rows.
type goal struct {
	Goal
	parts []string // of the path, between the stars
}

type goals []goal

func newGoals(all []Goal) (goals, error) {
	var compiled goals
	names := map[string]bool{}
	for _, g := range all {
		if g.Name == "" || names[g.Name] || (g.Path == "") == (g.Event == "") {
			return nil, fmt.Errorf("the goal %q needs a name that no other has, and either a path or an event", g.Name)
		}
		names[g.Name] = true
		c := goal{Goal: g}
		if g.Path != "" {
			c.parts = strings.Split(cleanPath(g.Path), "*")
		}
		compiled = append(compiled, c)
	}
	return compiled, nil
}

// digest changes when the goals do; it is "" where there are none.
func (all goals) digest() string {
	if len(all) == 0 {
		return ""
	}
	h := sha256.New()
	for _, g := range all {
		fmt.Fprintf(h, "%q %q %q\n", g.Name, g.Path, g.Event)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// named is the goal of a name, nil where there is none.
func (all goals) named(name string) *goal {
	i := slices.IndexFunc(all, func(g goal) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// event says whether a goal is an event of this name.
func (all goals) event(name string) bool {
	return slices.ContainsFunc(all, func(g goal) bool { return g.Event == name })
}

// reachedBy says whether a view or an event reaches the goal. An event on a page is no
// view of it.
func (g *goal) reachedBy(r *row) bool {
	if g.Event != "" || r.event != "" {
		return r.event == g.Event
	}
	return matches(g.parts, r.path)
}

// matches compares a path with the parts of a pattern between its stars.
func matches(parts []string, path string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return path == first
	}
	rest, begins := strings.CutPrefix(path, first)
	rest, ends := strings.CutSuffix(rest, last)
	if !begins || !ends {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return true
}

// maxEventName is how many characters the name of an event has at most.
const maxEventName = 64

// eventName reads the name of an event; "" means a view.
func eventName(given string) (name string, ok bool) {
	if given == "" {
		return "", true
	}
	name = strings.TrimSpace(clean(given, maxEventName))
	return name, name != "" && utf8.RuneCountInString(given) <= maxEventName
}

// maxEventNames is how many names events may have on a day, beside those of goals:
// anyone can send any.
const maxEventNames = 100

// eventNames are the names that the events of a day have. It is safe for use by many
// goroutines.
type eventNames struct {
	mu    sync.Mutex
	day   string
	known map[string]bool
}

// admit says whether a row may be stored: a view always, an event if the day knows its
// name, or has a place for another one.
func (n *eventNames) admit(ctx context.Context, h *Handler, r *row) (bool, error) {
	if r.event == "" || h.goals.event(r.event) {
		return true, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.day != r.day {
		var names []string
		if err := h.DB.SelectContext(ctx, &names, h.DB.Rebind("SELECT DISTINCT event FROM cmsjobs_page_views WHERE "+
			"day = ? AND event <> ''"), r.day); err != nil {
			return false, fmt.Errorf("reading the names of the events of %s: %w", r.day, err)
		}
		n.day, n.known = r.day, map[string]bool{}
		for _, name := range names {
			if !h.goals.event(name) {
				n.known[name] = true
			}
		}
	}
	if !n.known[r.event] && len(n.known) >= maxEventNames {
		return false, nil
	}
	n.known[r.event] = true
	return true, nil
}
