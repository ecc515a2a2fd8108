package ops

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Filter chooses jobs as people write it: in a query, a form, a JSON body or
// the flags of a command. Empty fields choose all.
type Filter struct {
	IDs    []string `json:"ids,omitempty"` // UUIDs
	Status []string `json:"status,omitempty"`
	Type   []string `json:"type,omitempty"`
	Queue  []string `json:"queue,omitempty"`
	Text   string   `json:"text,omitempty"` // in the payload or the error
	Cause  string   `json:"cause,omitempty"`
	Since  string   `json:"since,omitempty"` // as ParseTime reads it
	Until  string   `json:"until,omitempty"`
	Worker []string `json:"worker,omitempty"` // that ran or run it: a name, or its host
	Tag    []string `json:"tag,omitempty"`    // of PHP's jobs
	// problem is what could not be read of q; Parse says it.
	problem error
}

// The bounds of a filter.
const (
	maxValues = 1000 // of one field
	maxText   = 1000 // bytes
	maxCause  = 191
)

// FilterOf reads a filter from a query or a form: ids, status, type, queue, worker,
// tag, text, cause, since, until. Lists are separated by commas or given repeatedly;
// a tag may hold spaces and commas. q has the same in one line, see [Filter.Add].
func FilterOf(q url.Values) Filter {
	f := Filter{IDs: list(q["ids"]), Status: list(q["status"]), Type: list(q["type"]), Queue: list(q["queue"]),
		Text: q.Get("text"), Cause: q.Get("cause"), Since: q.Get("since"), Until: q.Get("until"),
		Worker: list(q["worker"])}
	for _, tag := range q["tag"] {
		if tag = strings.TrimSpace(tag); tag != "" {
			f.Tag = append(f.Tag, tag)
		}
	}
	for _, line := range q["q"] {
		if err := f.Add(line); err != nil {
			f.problem = err
		}
	}
	return f
}

func list(values []string) (all []string) {
	for _, v := range values {
		all = append(all, strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return all
}

// Query is the filter as FilterOf reads it.
func (f Filter) Query() url.Values {
	q := url.Values{}
	for name, values := range map[string][]string{"ids": f.IDs, "status": f.Status, "type": f.Type, "queue": f.Queue,
		"worker": f.Worker, "tag": f.Tag} {
		if len(values) > 0 {
			q[name] = slices.Clone(values)
		}
	}
	for name, text := range map[string]string{"text": f.Text, "cause": f.Cause, "since": f.Since, "until": f.Until} {
		if text != "" {
			q.Set(name, text)
		}
	}
	return q
}

// Empty says that the filter chooses all jobs.
func (f Filter) Empty() bool {
	return len(f.IDs)+len(f.Status)+len(f.Type)+len(f.Queue)+len(f.Worker)+len(f.Tag) == 0 &&
		f.Text+f.Cause+f.Since+f.Until == ""
}

// Narrows says that the filter chooses less than all jobs of a status.
func (f Filter) Narrows() bool {
	f.Status = nil
	return !f.Empty()
}

// Parse is the filter as the store takes it. Lengths of time count from now.
func (f Filter) Parse(now time.Time) (jobs.Filter, error) {
	parsed := jobs.Filter{Types: f.Type, Queues: f.Queue, UUIDs: f.IDs, Text: f.Text, Cause: f.Cause,
		Workers: f.Worker, Tags: f.Tag}
	if f.problem != nil {
		return parsed, f.problem
	}
	if max(len(f.IDs), len(f.Type), len(f.Queue), len(f.Status), len(f.Worker), len(f.Tag)) > maxValues ||
		len(f.Text) > maxText || len(f.Cause) > maxCause {
		return parsed, invalid("", "The filter is too long: %d values a field at most.", maxValues)
	}
	for _, text := range append([]string{f.Text, f.Cause}, slices.Concat(f.IDs, f.Type, f.Queue, f.Worker,
		f.Tag)...) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return parsed, invalid("", "The filter is not UTF-8 text.")
		}
	}
	for _, word := range f.Status {
		status, ok := jobs.ParseStatus(word)
		if !ok {
			return parsed, invalid("status", "No status is named %q; use queued, processing, completed, failed or "+
				"cancelled.", shown(word))
		}
		if !slices.Contains(parsed.Statuses, status) {
			parsed.Statuses = append(parsed.Statuses, status)
		}
	}
	var err error
	if parsed.Since, err = ParseTime(f.Since, "since", now); err != nil {
		return parsed, err
	}
	parsed.Until, err = ParseTime(f.Until, "until", now)
	return parsed, err
}
