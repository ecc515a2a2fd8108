package web

import (
	"context"
	"io/fs"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
)

// Feature is a part of the pages and the API. One package below feature holds
// all of it.
type Feature struct {
	// Name is the feature's word in texts (nav.NAME).
	Name string
	// Path of its page, which the menu has an entry for.
	Path string
	// Also are its further entries of the menu.
	Also []MenuEntry
	// Group is where the menu has it.
	Group Group
	// Routes are its pages, forms and calls of the API; see [PageRoute] and [FormRoute].
	Routes []Route
	// Missing names the needs of its routes that are not configured.
	Missing []string
	// Files has page_NAME.html for each of its pages, and en.yaml and vi.yaml
	// with their texts; nil has neither.
	Files fs.FS
	// Overview is what it shows on the first page; nil shows nothing.
	Overview func(*Request) (Summary, error)
	// Warm asks for answers that are expensive, ahead of the first person; nil has
	// none.
	Warm func(context.Context, Config, *answers.Cache) error
	// Collectors are what it adds to /metrics; nil adds nothing.
	Collectors func(Config) []prometheus.Collector
}

// MenuEntry is one of the menu, whose text is nav.NAME.
type MenuEntry struct{ Name, Path string }

// Group is a part of the menu.
type Group int

// The parts of the menu.
const (
	Site           Group = iota // what jobs do for the site
	Queue                       // jobs and what runs them
	Administration              // for administrators only
)

// menu are the entries of a part.
func menu(features []Feature, part Group) []MenuEntry {
	var all []MenuEntry
	for _, f := range features {
		if f.Group == part && f.Path != "" {
			all = append(append(all, MenuEntry{f.Name, f.Path}), f.Also...)
		}
	}
	return all
}

// The parts of the server that an installation may lack, by the name that people
// read when it does. A route that needs one says so, and its handler may rely on it.
const (
	NeedsSettings = "list of settings"
	NeedsHistory  = "history"
)

// missing are the parts that are not configured.
func (c Config) missing() map[string]bool {
	all := map[string]bool{NeedsSettings: c.Settings == nil, NeedsHistory: c.History == nil}
	for _, f := range c.Features {
		for _, name := range f.Missing {
			all[name] = true
		}
	}
	return all
}

// Summary is what a feature shows on the overview.
type Summary struct {
	Tile     *Tile
	Warnings []Warning
	Plots    []chart.Plot
	Section  *Section
	// Pending is true while some of it is being counted.
	Pending bool
}

// Tile is one figure beside those of the queue.
type Tile struct {
	Key, Path string // of its heading's text and of the page behind it
	At        time.Time
	Note      string
}

// Warning is one thing that is not as it should be.
type Warning struct {
	Key, Path string // of its text and of the page where something can be done
	// Condition that says the same; where it holds, it is shown instead.
	Condition string
}

// Section is a short table.
type Section struct {
	ID, Key, Path string // Key is of its heading's text
	Rows          []SectionRow
	Empty         string // key of the text where there are no rows
}

// SectionRow is a name, its size and how many parts it has; −1 is unknown.
type SectionRow struct {
	Name         string
	Bytes, Count int64
}

// PageRoute is a route that shows people a page.
func PageRoute(path, name, summary string, scope access.Scope, handle func(*Request) error) Route {
	return Route{Method: "GET", Path: path, Name: name, Summary: summary, Scope: scope, Managed: scope == access.Read,
		Page: true, Type: "text/html", Handle: handle}
}

// FormRoute is a route that takes a form of a page. It answers with the page that
// shows what came of it.
func FormRoute(path, name, summary string, scope access.Scope, handle func(*Request) error) Route {
	return Route{Method: "POST", Path: path, Name: name, Summary: summary, Scope: scope,
		Managed: scope == access.Operate,
		Page:    true, Type: "text/html", Handle: handle}
}

// serve answers a request that may be answered.
func (r Route) serve(s *Server, c echo.Context) error {
	if r.Handle == nil {
		return r.handle(s, c)
	}
	if r.Page && !r.changes() {
		c.SetRequest(c.Request().WithContext(s.answers.WithPatience(c.Request().Context())))
	}
	return r.Handle(&Request{c, s})
}
