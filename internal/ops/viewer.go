package ops

import (
	"encoding/json"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// Viewer shows things to one audience, secrets masked. Whatever a job, a server
// or a person wrote goes through it on its way out.
type Viewer struct {
	// Mask are the rules for payloads; nil shows everything unmasked, for the
	// administrator of the host.
	Mask *redact.Rules
	To   redact.Audience
	// Registry knows the types whose payloads can be read.
	Registry *jobs.Registry
}

// Payload is JSON that a type of job takes or gives.
func (v Viewer) Payload(jobType string, raw []byte) json.RawMessage {
	if v.Mask == nil {
		return unmasked(raw)
	}
	return v.Mask.JSON(v.To, jobType, raw)
}

// unmasked puts a payload into JSON whatever it is.
func unmasked(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	if json.Valid(raw) {
		return raw
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		return json.RawMessage(`"(not readable)"`)
	}
	return text
}

// Text is what a job or a server said.
func (v Viewer) Text(text string) string {
	if v.Mask == nil {
		return text
	}
	return redact.TextFor(v.To, text)
}

// Result is what a handler left behind, nil where it left nothing.
func (v Viewer) Result(jobType string, raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return v.Payload(jobType, raw)
}

// Progress is how far a job is; its note is the handler's.
func (v Viewer) Progress(p *jobs.Progress) *jobs.Progress {
	if p == nil {
		return nil
	}
	copied := *p
	copied.Note = v.Text(p.Note)
	return &copied
}

// Lines are what a handler said.
func (v Viewer) Lines(list []jobs.LogLine) []jobs.LogLine {
	return Each(list, func(l jobs.LogLine) jobs.LogLine { return jobs.LogLine{At: l.At, Text: v.Text(l.Text)} })
}

// Reasons are why a job does not run.
func (v Viewer) Reasons(list []explain.Reason) []explain.Reason {
	return Each(list, func(r explain.Reason) explain.Reason {
		r.Text, r.Args = v.Text(r.Text), slices.Clone(r.Args)
		for i, arg := range r.Args {
			if text, is := arg.(string); is {
				r.Args[i] = v.Text(text)
			}
		}
		return r
	})
}

// known says whether a name is a type here.
func (v Viewer) known(name string) bool {
	_, ok := v.Registry.Known(name)
	return ok
}
