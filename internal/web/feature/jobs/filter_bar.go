package jobs

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// filterBar is the filter above a list: its conditions, each of which can be taken
// away, a line for more, fields for who knows no qualifiers, and saved filters.
type filterBar struct {
	List   string // of jobs, failed or runs: the last part of its address
	Filter ops.Filter
	Tokens []filterToken
	Line   string // the one that could not be read
	// Outcome is that of the list of runs.
	Outcome string
	// Options are what the line may have, as it writes it: type:mail.send.
	Options []string
	Fields  []filterField
	Saved   []savedFilter
	Saves   bool   // filters can be saved here
	Query   string // the whole filter, as an address has it
	CSV     string // the address of the file
	Problem string
}

// filterToken is a condition that is set, and the list without it.
type filterToken struct{ Name, Value, Without string }

// filterField is one field of the form without qualifiers.
type filterField struct {
	Name, Qualifier string
	Key             string // of its label's text
	Value           string
	Options         []string
	Hint            string
}

// savedFilter is one of the caller's own.
type savedFilter struct {
	Name, Path string
	Current    bool
}

// bar is the filter of a list as the request asks for it.
func (h handlers) bar(req *web.Request, list string, qualifiers ...string) (filterBar, error) {
	b := filterBar{List: list, Filter: req.WrittenFilter(), Saves: h.Saved != nil}
	if list == "runs" {
		b.Outcome = redact.Clip(req.QueryParam("outcome"), 20)
	}
	b.Query = b.query(b.Filter)
	b.CSV = b.csv()
	for _, token := range b.Filter.Tokens() {
		if slices.Contains(qualifiers, token.Name) || token.Name == "text" || token.Name == "cause" {
			b.Tokens = append(b.Tokens, filterToken{token.Name, token.Value, b.at(b.query(token.Without))})
		}
	}
	known, err := h.knownValues(req)
	if err != nil {
		return b, err
	}
	written := b.Filter.Query()
	for _, name := range qualifiers {
		for _, value := range known[name] {
			b.Options = append(b.Options, name+":"+value)
		}
		b.Fields = append(b.Fields, filterField{Name: fieldNames[name], Qualifier: name, Key: labels[name],
			Value: strings.Join(written[fieldNames[name]], ", "), Options: known[name], Hint: hints[name]})
	}
	return b, h.addSaved(req, &b)
}

// fieldNames are the parameters of the address that qualifiers fill.
var fieldNames = map[string]string{"type": "type", "status": "status", "queue": "queue", "worker": "worker",
	"tag": "tag", "id": "ids", "since": "since", "until": "until"}

// labels are the keys of their texts.
var labels = map[string]string{"type": "job.type", "status": "job.status", "queue": "job.queue", "worker": "job.worker",
	"tag": "php.tags", "id": "job.id", "since": "jobs.since", "until": "jobs.until"}

// hints are examples of values, the same in each language.
var hints = map[string]string{"type": "mail.send", "queue": "default", "worker": "web-1:4711:x",
	"tag": "App\\Models\\Post:5", "since": "24h", "until": "2026-11-21", "id": "0b3e8c1e-…"}

// knownValues are values that exist, by qualifier.
func (h handlers) knownValues(req *web.Request) (map[string][]string, error) {
	stats, err := req.Stats()
	if err != nil {
		return nil, fmt.Errorf("listing queues for the filter: %w", err)
	}
	known := map[string][]string{"type": req.Registry().KnownTypes(), "status": web.StatusNames(), "since": periods}
	for _, q := range stats.Queues {
		known["queue"] = append(known["queue"], q.Queue)
	}
	if h.Workers == nil {
		return known, nil
	}
	workers, err := h.Workers.Workers(req.Ctx())
	if err != nil {
		return nil, fmt.Errorf("listing workers for the filter: %w", err)
	}
	for _, w := range workers[:min(len(workers), mostWorkers)] {
		if w.Alive {
			known["worker"] = append(known["worker"], w.ID)
		}
	}
	return known, nil
}

// alsoTypes adds types that the list shows and this program does not have: classes of PHP's jobs,
// types of other programs. They are as many as a page has rows.
func (b *filterBar) alsoTypes(shown []string) {
	slices.Sort(shown)
	i := slices.IndexFunc(b.Fields, func(f filterField) bool { return f.Qualifier == "type" })
	for _, name := range slices.Compact(shown) {
		if i >= 0 && name != "" && !slices.Contains(b.Fields[i].Options, name) {
			b.Fields[i].Options = append(slices.Clip(b.Fields[i].Options), name)
			b.Options = append(b.Options, "type:"+name)
		}
	}
}

// mostWorkers bounds how many workers a page suggests.
const mostWorkers = 100

// query is a filter of this list as an address has it.
func (b filterBar) query(f ops.Filter) string { return b.values(f).Encode() }

func (b filterBar) values(f ops.Filter) url.Values {
	q := f.Query()
	if b.Outcome != "" {
		q.Set("outcome", b.Outcome)
	}
	return q
}

// shown says beside the form what is wrong with the filter; an error of ours is none of
// the filter's, and is returned.
func (b *filterBar) shown(req *web.Request, err error) error {
	var ours bool
	if _, b.Problem, ours = req.Refusal(err); ours {
		return err
	}
	b.Line = redact.Clip(req.QueryParam("q"), 1000)
	return nil
}

// csv is the address of the file with what the list shows; the page of failed jobs
// groups them, its file lists them.
func (b filterBar) csv() string {
	list, f := b.List, b.Filter
	if list == "failed" {
		list, f.Status = "jobs", []string{"failed"}
	}
	return "/admin/" + list + "/export?" + b.query(f)
}

// at is the list's address with a filter.
func (b filterBar) at(query string) string {
	if query == "" {
		return b.Path()
	}
	return b.Path() + "?" + query
}

// Path is the list's address without a filter.
func (b filterBar) Path() string { return "/admin/" + b.List }

// First is the address of the list's first part.
func (b filterBar) First() string { return b.at(b.Query) }

// Hidden are the conditions that are set, for a form that adds to them.
func (b filterBar) Hidden() [][2]string {
	q, err := url.ParseQuery(b.Query)
	if err != nil {
		return nil
	}
	var all [][2]string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, value := range q[name] {
			all = append(all, [2]string{name, value})
		}
	}
	return all
}

// addSaved adds the caller's saved filters of the list.
func (h handlers) addSaved(req *web.Request, b *filterBar) error {
	if h.Saved == nil {
		return nil
	}
	list, err := h.Saved.Of(req.Ctx(), req.Caller().Name, b.List)
	if err != nil {
		return err
	}
	for _, f := range list {
		b.Saved = append(b.Saved, savedFilter{f.Name, b.at(f.Query), f.Query == b.Query})
	}
	return nil
}
