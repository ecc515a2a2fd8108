package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
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
	// Count is how many of the topic the message stands for.
	Count int `json:"count,omitempty"`
	// Digest asks for what was held back of the topic.
	Digest bool `json:"digest,omitempty" default:"false"`
	// Immediate is never held back: the sender sees to it that it is rare. Over
	// HTTP only administrators may set it, and Told.
	Immediate bool `json:"immediate,omitempty" default:"false"`
	// SentDirectly says that Direct brought it to the chats before.
	SentDirectly bool `json:"sent_directly,omitempty" default:"false"`
}

// Validate finds what no repeating would fix.
func (p *Payload) Validate() error {
	switch {
	case p.Title == "" && !p.Digest:
		return errors.New("a notification needs a title")
	case levelOf(p.Level) < 0:
		return fmt.Errorf("the level is %.40q; it may be info, warning or error", p.Level)
	case p.Digest && p.Topic == "":
		return errors.New("a digest needs a topic")
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
	return fields
}

func (p *Payload) topic() string {
	if p.Topic != "" {
		return cut(p.Topic, 191)
	}
	return cut(p.Title, 191)
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

// CMSNotifications puts a message into the CMS's own list; *cms.Site does.
type CMSNotifications interface {
	Notify(ctx context.Context, now time.Time, n cms.Notification) (told bool, err error)
}

// Mailer makes the job that mails a template's data to addresses; no address
// means the CMS's administrators.
type Mailer func(to []string, template string, data map[string]any) jobs.Spec

// Config is what a Handler needs.
type Config struct {
	// DB holds cmsjobs_notifications. Required.
	DB *sqlx.DB
	// Channels that messages go to.
	Channels []Channel
	// Interval between two messages of a topic; 1 h.
	Interval time.Duration
	// Site names the site in messages.
	Site string
	// Mail makes mail jobs; channels of type mail need it.
	Mail Mailer
	// Administrators are whom a mail channel without addresses reaches, none where
	// the site names nobody: a mail to nobody would only be one more failed job.
	// When nil, such mails go out and find their addresses themselves.
	Administrators func(context.Context) ([]string, error)
	// CMS is the list of the CMS; channels of type cms need it.
	CMS CMSNotifications
	// Client sends to chats; it must refuse private addresses (outbound.New).
	// Channels of the other types need it.
	Client *http.Client
	// Now and Logger are required.
	Now    func() time.Time
	Logger *slog.Logger
}

// Handler tells the administrators. It is safe for concurrent use.
type Handler struct{ c Config }

// New checks c and returns a Handler.
func New(c Config) (*Handler, error) {
	if c.DB == nil || c.Now == nil || c.Logger == nil {
		return nil, errors.New("notify: DB, Now and Logger are required")
	}
	if c.Interval <= 0 {
		c.Interval = time.Hour
	}
	seen := map[string]bool{}
	for i := range c.Channels {
		channel := &c.Channels[i]
		if channel.Name == "" {
			channel.Name = channel.Type
		}
		if seen[channel.Name] {
			return nil, fmt.Errorf("notify: two channels are named %q", channel.Name)
		}
		seen[channel.Name] = true
		if err := c.check(*channel); err != nil {
			return nil, fmt.Errorf("notify: channel %s: %w", channel.Name, err)
		}
	}
	return &Handler{c}, nil
}

// Register adds notification.send and its alias.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Send, h.send)
	jobs.Restrict(r, Send, jobs.Restriction[Payload]{Reserved: reserved})
	r.Alias("send_notification", Send.Name)
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

// Condition is the notification of a condition that began or ended. told says
// that Direct brought it to the chats before.
func Condition(p Payload, told bool) jobs.Spec {
	p.Immediate, p.SentDirectly = true, told
	return Send.New(p)
}

// Direct tells the chats at once, without a job: for the time in which the
// database takes none. Mail and the CMS's list need the database.
func (h *Handler) Direct(ctx context.Context, p Payload) error {
	var faults []error
	for _, c := range h.c.Channels {
		if !c.chat() || levelOf(p.Level) < levelOf(c.MinLevel) {
			continue
		}
		if err := h.by(ctx, c, p); err != nil {
			faults = append(faults, fmt.Errorf("telling %s: %w", c, err))
		}
	}
	return errors.Join(faults...)
}

// BackupBad is the notification of a backup that failed or cannot be trusted.
func BackupBad(message, url string) jobs.Spec {
	return Send.New(Payload{Topic: "backup.bad", Title: "The backup is not good", Message: message, Level: Error,
		URL: url})
}
