package links

import (
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Payload says where a check begins and when it ends.
type Payload struct {
	// From are addresses of the site, or paths: /news.
	From []string `json:"from,omitempty" example:"[\"/\"]" synonyms:"urls,url,paths"`
	// Most is how many addresses are asked for.
	Most int `json:"most,omitempty" default:"5000"`
}

// What a job may ask for.
const (
	mostAddresses, mostBeginnings = 50_000, 1000
	defaultMost                   = 5000
)

// Validate refuses what no retry repairs.
func (p *Payload) Validate() error {
	switch {
	case p.Most < 0 || p.Most > mostAddresses:
		return phrase.Errorf("most is %d: it may be 1 to %d", p.Most, mostAddresses)
	case len(p.From) > mostBeginnings:
		return phrase.Errorf("from has more than 1000 addresses: name where the check begins, it follows the links")
	}
	return nil
}

// Check is the type. One check at a time is enough for a site.
var Check = jobs.Kind[Payload]{Name: "links.check", Policy: jobs.Policy{MaxAttempts: 2, Timeout: time.Hour, Limit: 1,
	Backoff: jobs.Exponential(time.Minute, time.Hour)}}

// Result is what a check found.
type Result struct {
	// Pages were read, Files (pictures, scripts, downloads) only asked for.
	Pages int `json:"pages"`
	Files int `json:"files"`
	// Found counts the addresses that lead nowhere, Broken names the first 100 of them.
	Found  int      `json:"found"`
	Broken []Broken `json:"broken,omitempty"`
	// Left is how many addresses were known and not asked for, because of the limit or the time.
	Left int `json:"left,omitempty"`
}

// Broken is an address that leads nowhere.
type Broken struct {
	URL string `json:"url"`
	// Status is that of the answer; 0 where there was none, Error then says why.
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	// On are pages that link to it, the first 5 of Links.
	On    []string `json:"on,omitempty"`
	Links int      `json:"links"`
}

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	s.Say("Read %s {page|pages} and asked for %s {file|files}.", r.Pages, r.Files)
	if r.Found == 0 {
		s.Say("Every address leads somewhere.")
	} else {
		s.Say("%s {address leads|addresses lead} nowhere.", r.Found)
	}
	phrase.Count(&s, r.Left, "%s known {address was|addresses were} not asked for: the limit or the time was reached.")
	phrase.List(&s, phrase.Columns("Address", "Answer", "Linked on"), r.Broken, func(b Broken) []any {
		answer := any(b.Status)
		if b.Status == 0 {
			answer = b.Error
		}
		return []any{b.URL, answer, strings.Join(b.On, "\n")}
	})
	return s
}
