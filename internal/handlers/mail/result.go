package mail

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

func (d *delivery) hasUnknown() bool {
	for _, state := range d.known {
		if state == Unknown {
			return true
		}
	}
	return false
}

// outcomeError turns the ledger into the job's end. Nobody is lost silently: it is
// nil only when every recipient was accepted, or is not to get the mail.
func (d *delivery) outcomeError() error {
	count := map[Status]int{}
	for _, g := range d.letter.groups() {
		for _, a := range g.recipients {
			count[d.known[a.Key()]]++
		}
	}
	switch {
	case count[Deferred]+count[""]+count[Sending] > 0:
		return fmt.Errorf("%d of the recipients could not be reached yet: %s", count[Deferred]+count[""]+
			count[Sending], d.first(Deferred))
	case count[Unknown] > 0 && d.h.c.ResendUnknown:
		return fmt.Errorf("the server died before it answered for %d of the recipients; they are sent to again",
			count[Unknown])
	case count[Unknown] > 0:
		return jobs.Permanent(fmt.Errorf("nobody knows whether %d of the recipients got the mail: the connection "+
			"died before the server's answer. Ask the mail server for Message-ID %s, and if it has none: cmsjobs "+
			"mail unknown %s && cmsjobs failed retry %[3]s",
			count[Unknown], d.letter.messageID(d.letter.groups()[0]), d.job.UUID))
	case count[Refused] > 0 && count[Accepted]+count[Bounced] == 0:
		return jobs.Permanent(fmt.Errorf("the mail was refused: %s", d.first(Refused)))
	}
	return nil
}

// first is what the server said about one recipient in that state.
func (d *delivery) first(state Status) string {
	for _, g := range d.letter.groups() {
		for _, a := range g.recipients {
			if o, seen := d.last[a.Key()]; seen && o.status == state {
				return a.Mailbox + ": " + cut(o.answer, maxAnswer)
			}
		}
	}
	return "see the mail log"
}

// Result is what a mail.send job leaves for people to read.
type Result struct {
	Driver     string         `json:"driver"`
	Host       string         `json:"host,omitempty"`
	MessageID  string         `json:"messageId"`
	Recipients map[Status]int `json:"recipients"`
	Problems   []Problem      `json:"problems,omitempty"` // at most 20
}

// Problem is a recipient that did not get the mail.
type Problem struct {
	Recipient string `json:"recipient"`
	Status    Status `json:"status"`
	Code      int    `json:"code,omitempty"`
	Answer    string `json:"answer,omitempty"`
}

func (d *delivery) report(ctx context.Context) error {
	groups := d.letter.groups()
	r := Result{Driver: d.transport.Driver, Host: d.transport.Host, Recipients: map[Status]int{}}
	r.MessageID = d.letter.messageID(groups[0])
	for _, g := range groups {
		for _, a := range g.recipients {
			state := d.known[a.Key()]
			if state == "" {
				state = Deferred
			}
			r.Recipients[state]++
			if state != Accepted && len(r.Problems) < 20 {
				o := d.last[a.Key()]
				r.Problems = append(r.Problems, Problem{a.Mailbox, state, o.code, cut(o.answer, maxAnswer)})
			}
		}
	}
	return jobs.SetResult(ctx, r)
}

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	others := 0
	for status, n := range r.Recipients {
		if status != Accepted {
			others += n
		}
	}
	s.Say("The mail was accepted for %s {recipient|recipients} (%s).", r.Recipients[Accepted], r.Driver)
	phrase.Count(&s, others, "%s {recipient|recipients} did not get it.")
	phrase.List(&s, phrase.Columns("Recipient", "Status", "Answer"), r.Problems, func(p Problem) []any {
		return []any{p.Recipient, string(p.Status), p.Answer}
	})
	return s
}
