package web

import (
	"context"
	"io/fs"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
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
	// Chapters are the places of the manual that explain its pages, by the page's
	// name: "backup#restoring".
	Chapters map[string]string
	// Overview is what it shows on the first page; nil shows nothing.
	Overview func(*Request) (Summary, error)
	// Warm asks for answers that are expensive, ahead of the first person; nil has
	// none.
	Warm func(context.Context, Config, *answers.Cache) error
	// Counts are figures beside entries of the menu; nil has none.
	Counts func(context.Context, Config, *answers.Cache) ([]Count, error)
	// Actions are what a person can start from any page; nil has none.
	Actions func(*Request) []Action
	// Collectors are what it adds to /metrics; nil adds nothing.
	Collectors func(Config) []prometheus.Collector
}

// Count is a figure beside an entry of the menu.
type Count struct {
	Path  string // of the entry
	N     int64  // 0 is not shown
	Key   string // of the text that says what is counted
	Level string // "", warn where somebody should look, bad where jobs failed for good
	// Live is the field of the event "stats" that has a newer figure; "" is none.
	Live string
}

// MenuEntry is one of the menu, whose text is nav.NAME and whose icon is NAME.
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

// Summary is what a feature shows on the overview.
type Summary struct {
	Tile     *Tile
	Warnings []Warning
	Section  *Section
	Storage  *Storage
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

// Storage is how the site's space grew and what takes it.
type Storage struct {
	Path string // of the page behind it
	// Days are oldest first; a day on which nothing was measured is not among them.
	Days []StorageDay
	// Free is what the site's disk has left; −1 is unknown.
	Free int64
}

// StorageDay is what was taken at the end of a day, by part.
type StorageDay struct {
	At    time.Time
	Parts map[string]int64
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

// Route is one thing that can be asked, and who may ask it.
type Route struct {
	Method, Path string
	// Name is what the audit log and the document call it: area.verb.
	Name, Summary string
	// Scope that it needs; "" is open to everybody.
	Scope access.Scope
	// Managed routes are opened by manage_rule, too.
	Managed bool
	// Stream routes have no time limit.
	Stream bool
	// Quiet routes change nothing although their method could.
	Quiet   bool
	Dialect APIDialect
	Query   []string // names of parameters, described in openapi
	Body    any      // a value of the body's type; nil for none
	Answer  any      // a value of the answer's type; nil for none
	Type    string   // of the answer; "" is application/json
	Status  int      // of success; 0 is 200
	// Needs is the part without which it answers 404.
	Needs string
	// Page routes answer people with HTML; they are not in the document.
	Page bool
	// Always routes stay when the API is switched off: those for programs that
	// watch the service.
	Always bool
	// Handle answers; routes of the server have handle instead.
	Handle func(*Request) error
	handle func(*Server, echo.Context) error
}

// changes says whether the route can change anything.
func (r Route) changes() bool { return r.Method != http.MethodGet && !r.Quiet }

// Requires is the route as one that needs a part.
func (r Route) Requires(p string) Route {
	r.Needs = p
	return r
}

// APIDialect is whose words a route speaks: our own, or a specification's.
type APIDialect int

const (
	V1               APIDialect = iota // queued, processing, completed, failed, cancelled
	PocketBaseCompat                   // S1: pending, processing, completed, failed
	S2Compat                           // S2: queued, running, succeeded, failed; camelCase
	familyCount                        // how many there are
)
