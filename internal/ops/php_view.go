package ops

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/php/phpjob"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// PHPView is what the payload of a job of PHP's says. Secrets in it are masked.
type PHPView struct {
	Class string `json:"class"`
	// Subject is the mailable, notification, listener or event that the class is about.
	Subject string `json:"subject,omitempty"`
	// Work is job, mail, notification, listener, broadcast, closure or method.
	Work       string         `json:"work"`
	Properties []PropertyView `json:"properties"`
	// Tags are the payload's or, as Horizon finds them, the models among the
	// properties. A tags() method of the class is not called.
	Tags  []string `json:"tags"`
	Chain []string `json:"chain,omitempty"` // the classes of the jobs that follow
	Batch string   `json:"batch,omitempty"`
	// Encrypted says that the properties are, Problem why they could not be read.
	Encrypted     bool   `json:"encrypted"`
	Problem       string `json:"problem,omitempty"`
	MaxExceptions *int64 `json:"max_exceptions,omitempty"`
	maxTries      int
	TimeoutS      *int64    `json:"timeout_s,omitempty"`
	Backoff       string    `json:"backoff,omitempty"` // seconds, with commas
	RetryUntil    time.Time `json:"retry_until,omitzero"`
}

// PropertyView is a property of a job of PHP's.
type PropertyView struct {
	Name       string `json:"name"`
	Visibility string `json:"visibility"`      // public, protected, private
	Class      string `json:"class,omitempty"` // that declares a private property
	// Value is absent for null.
	Value json.RawMessage `json:"value,omitempty"`
}

// Text is the value as JSON.
func (p PropertyView) Text() string { return cmp.Or(string(p.Value), "null") }

// php shows what is known of a job of PHP's; nil of one of ours.
func (v Viewer) php(r jobs.Record) *PHPView {
	if !r.Foreign {
		return nil
	}
	if r.Status != jobs.StatusQueued && r.Status != jobs.StatusProcessing && r.Status != jobs.StatusFailed {
		return v.endedPHP(r)
	}
	j := phpjob.Read(r.Payload)
	view := &PHPView{Class: v.Text(j.Class), Subject: v.Text(j.Subject), Work: string(j.Work),
		Tags:  Each(j.Tags, v.Text),
		Batch: v.Text(j.Batch), Encrypted: j.Encrypted, Problem: v.Text(j.Problem), MaxExceptions: j.MaxExceptions,
		TimeoutS: j.Timeout, maxTries: tries(j.MaxTries), Backoff: v.Text(j.Backoff), RetryUntil: j.RetryUntil,
		Properties: []PropertyView{}}
	if len(j.Chain) > 0 {
		view.Chain = Each(j.Chain, v.Text)
	}
	for _, p := range j.Properties {
		view.Properties = append(view.Properties, v.property(&j, p))
	}
	return view
}

// tries is a limit of attempts as JobView has it: 0 is none, or not said.
func tries(n *int64) int {
	if n == nil || *n < 0 || *n > math.MaxInt32 {
		return 0
	}
	return int(*n)
}

// endedPHP is what the history keeps of a job that is done: not its properties.
func (v Viewer) endedPHP(r jobs.Record) *PHPView {
	var kept struct {
		Data phpjob.Kept `json:"data"`
	}
	_ = json.Unmarshal(r.Payload, &kept) // nothing kept: it has neither tags nor batch
	return &PHPView{Class: v.Text(r.Type), Work: string(phpjob.Own), Properties: []PropertyView{},
		Tags: Each(kept.Data.Tags, v.Text), Batch: v.Text(kept.Data.Batch)}
}

// property shows one property. Readers see of mailables and notifications only which
// models they are about: the texts hold reset links and codes.
func (v Viewer) property(j *phpjob.Job, p phpjob.Property) PropertyView {
	view := PropertyView{Name: v.Text(p.Name), Visibility: string(p.Visibility), Class: v.Text(p.Class)}
	if v.Mask != nil && v.To < redact.Operators && !p.Models &&
		(j.Work == phpjob.Mail || j.Work == phpjob.Notification) {
		view.Value = json.RawMessage(`"` + redact.Mask + `"`)
		return view
	}
	raw, err := json.Marshal(map[string]any{p.Name: p.Value})
	if err != nil {
		view.Value = json.RawMessage(`"(not readable)"`)
		return view
	}
	var one map[string]json.RawMessage
	if json.Unmarshal(v.Payload(j.Name(), raw), &one) == nil {
		for _, value := range one { // its name may have been masked, too
			if string(value) != "null" {
				view.Value = value
			}
		}
	}
	return view
}

// summarized bounds Summary, in bytes; settings are properties that say how a job
// runs, not what it is about.
const summarized = 300

var settings = []string{"tries", "timeout", "backoff", "maxExceptions", "failOnTimeout", "uniqueFor"}

// Summary is the job's properties in a line; of an ended job its tags.
func (p *PHPView) Summary() string {
	var b strings.Builder
	for _, x := range p.Properties {
		if b.Len() > summarized {
			break
		}
		if slices.Contains(settings, x.Name) {
			continue
		}
		fmt.Fprintf(&b, "%s: %s  ", x.Name, redact.Clip(x.Text(), 80))
	}
	if b.Len() == 0 {
		b.WriteString(strings.Join(p.Tags, " "))
	}
	if p.Encrypted {
		b.WriteString("(encrypted)")
	}
	return strings.TrimSpace(b.String())
}

// Frame is a line of PHP's stack trace.
type Frame struct {
	Text   string
	Vendor bool // it is in the code of a package
}

// Trace is an exception as PHP writes it, taken apart.
type Trace struct {
	Message string
	// Own are the frames of the application's code, All is the whole trace.
	Own, All []Frame
}

// TraceOf takes an error text apart; one without PHP's stack trace is all message.
func TraceOf(text string) Trace {
	message, rest, found := strings.Cut(text, "\nStack trace:\n")
	if !found {
		return Trace{Message: text}
	}
	t := Trace{Message: message}
	for line := range strings.SplitSeq(rest, "\n") {
		if line == "" {
			continue
		}
		f := Frame{line, !strings.HasPrefix(line, "#") || strings.Contains(line, "/vendor/") ||
			strings.Contains(line, "[internal function]") || strings.Contains(line, "{main}")}
		if t.All = append(t.All, f); !f.Vendor {
			t.Own = append(t.Own, f)
		}
	}
	return t
}

// Trace is the job's error taken apart, for the page and the command line.
func (v JobView) Trace() Trace { return TraceOf(v.Error) }

// Trace is the run's error taken apart.
func (v RunView) Trace() Trace { return TraceOf(v.Error) }
