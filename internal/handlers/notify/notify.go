package notify

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Send is the type notification.send.
var Send = jobs.Kind[Payload]{
	Name: "notification.send",
	Policy: jobs.Policy{
		MaxAttempts: 3,
		Timeout:     time.Minute,
		Backoff:     jobs.Steps(60*time.Second, 300*time.Second, 900*time.Second),
	},
}

// Levels, from least to most.
const (
	Info    = "info"
	Warning = "warning"
	Error   = "error"
)

// Payload is one thing to tell.
type Payload struct {
	// Topic groups messages of which one an hour is enough; the title when empty.
	Topic   string `json:"topic,omitempty"`
	Title   string `json:"title" required:"true" example:"The shop is empty" synonyms:"subject"`
	Message string `json:"message,omitempty" example:"No product is for sale." synonyms:"body,text"`
	Level   string `json:"level,omitempty" default:"info" choices:"info,warning,error" example:"warning"`
	URL     string `json:"url,omitempty"` // where to look at it
	// Channel names the one channel that this job is for. Empty: all that take
	// the level.
	Channel string `json:"channel,omitempty"`
	// Passed says that a job for all channels was let through and made this one for
	// Channel: it is not held back again.
	Passed bool `json:"passed,omitempty" default:"false"`
	// Count is how many of the topic the message stands for.
	Count int `json:"count,omitempty"`
	// Digest asks for what was held back of the topic.
	Digest bool `json:"digest,omitempty" default:"false"`
	// Immediate is never held back: the sender sees to it that it is rare. Over HTTP
	// only administrators may set it, and the others that go around the interval.
	Immediate bool `json:"immediate,omitempty" default:"false"`
	// SentDirectly says that Direct brought it to the chats before.
	SentDirectly bool `json:"sent_directly,omitempty" default:"false"`
}

// Result is what a notification leaves for people to read.
type Result struct {
	Channels []string `json:"channels,omitempty"` // jobs were made for these
	Channel  string   `json:"channel,omitempty"`  // this one was notified
	Held     bool     `json:"held,omitempty"`     // told later, with others of its topic
	Note     string   `json:"note,omitempty"`
}

// Validate finds what no repeating would fix.
func (p *Payload) Validate() error {
	switch {
	case p.Title == "" && !p.Digest:
		return phrase.Errorf("a notification needs a title")
	case levelOf(p.Level) < 0:
		return phrase.Errorf("the level is %.40q; it may be info, warning or error", p.Level)
	case p.Digest && p.Topic == "":
		return phrase.Errorf("a digest needs a topic")
	}
	return nil
}

// reserved are the fields that go around what holds messages back.
func reserved(p Payload) (fields []string) {
	if p.Immediate {
		fields = append(fields, "immediate")
	}
	if p.SentDirectly {
		fields = append(fields, "sent_directly")
	}
	if p.Passed {
		fields = append(fields, "passed")
	}
	if p.Digest {
		fields = append(fields, "digest")
	}
	return fields
}

func (p *Payload) topic() string { return cut(cmp.Or(p.Topic, p.Title), 191) }

// counted is the topic under which the message is counted: those to one channel are
// counted beside those to all.
func (p *Payload) counted() string {
	if p.Channel == "" {
		return p.topic()
	}
	return cut(p.Channel+": "+p.topic(), 191)
}

func levelOf(level string) int {
	switch level {
	case "", Info:
		return 0
	case Warning:
		return 1
	case Error:
		return 2
	}
	return -1
}

// causedHere marks the mail jobs that this package makes.
var causedHere = map[string]string{"cause": Send.Name}

// JobFailed is the notification of a failed job. It is false for jobs whose
// failure would only cause the next one: this package's own, and their mails.
func JobFailed(job jobs.Job, message, url string) (jobs.Spec, bool) {
	var metadata struct{ Cause string }
	_ = json.Unmarshal(job.Metadata, &metadata) // foreign metadata names no cause of ours
	if job.Type == Send.Name || metadata.Cause == Send.Name {
		return jobs.Spec{}, false
	}
	return Send.New(Payload{Topic: "job.failed:" + job.Type, Title: job.Type + " failed", Message: message,
		Level: Error, URL: url}), true
}

// ScheduleMissed is the notification of a schedule entry that did not run.
func ScheduleMissed(entry, message, url string) jobs.Spec {
	return Send.New(Payload{Topic: "schedule.missed:" + entry, Title: "The schedule " + entry + " was missed",
		Message: message, Level: Warning, URL: url})
}

// BackupMade is the notification of a good backup, for those who want each.
func BackupMade(message, url string) jobs.Spec {
	return Send.New(Payload{Topic: "backup.good", Title: "A backup was made", Message: message, Level: Info, URL: url})
}

// BackupsWatched is the notification of what a look at all backups showed:
// something to worry about, or a week's sums.
func BackupsWatched(message string, worrying, digest bool, url string) jobs.Spec {
	p := Payload{Topic: "backup.watched", Title: "The backups need a look", Message: message, Level: Warning, URL: url}
	if digest {
		p.Topic, p.Title = "backup.digest", "The week's backups"
	}
	if !worrying {
		p.Level = Info
	}
	return Send.New(p)
}

// LinksBroken is the notification of links of the site that lead nowhere.
func LinksBroken(message, url string) jobs.Spec {
	return Send.New(Payload{Topic: "links.broken", Title: "Links of the site lead nowhere", Message: message,
		Level: Warning, URL: url})
}

// Condition is the notification of a condition that began or ended. told says
// that Direct brought it to the chats before.
func Condition(p Payload, told bool) jobs.Spec {
	p.Immediate, p.SentDirectly = true, told
	return Send.New(p)
}

// BackupBad is the notification of a backup that failed or cannot be trusted.
func BackupBad(message, url string) jobs.Spec {
	return Send.New(Payload{Topic: "backup.bad", Title: "The backup is not good", Message: message, Level: Error,
		URL: url})
}

// cut makes foreign text fit for a column and a message, whose lines stay.
func cut(text string, limit int) string { return jobs.PlainText(text, limit, '\n') }

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	switch {
	case r.Note != "":
		s.Say("Note: %s", r.Note)
	case r.Held:
		s.Say("It is held back, and sent later with others of its topic.")
	case r.Channel != "":
		s.Say("The channel %s was notified.", r.Channel)
	default:
		s.Say("Jobs were made for %s {channel|channels}: %s.", len(r.Channels), strings.Join(r.Channels, ", "))
	}
	return s
}
