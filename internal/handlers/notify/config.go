package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

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

// Types of channels.
const (
	TypeMail     = "mail"
	TypeCMS      = "cms"
	TypeSlack    = "slack"
	TypeDiscord  = "discord"
	TypeTelegram = "telegram"
	TypeTeams    = "teams"
	TypeGeneric  = "generic" // plain JSON
)

// Channel is one way to the administrators.
type Channel struct {
	// Name stands in payloads and lists; the type when empty.
	Name string
	Type string
	// To are the addresses of a mail channel; none means the CMS's administrators.
	To []string
	// URL of a chat's incoming webhook; for telegram the bot's address,
	// https://api.telegram.org/bot<token>. It is a secret: it is in no error.
	URL string
	// Chat that a telegram bot writes to.
	Chat string
	// MinLevel is the least level that goes here; info when empty.
	MinLevel string
}

// String names a channel without its secrets.
func (c Channel) String() string { return c.Name + " (" + c.Type + ")" }

// chat says that the channel is an address on the network.
func (c Channel) chat() bool { return c.Type != TypeMail && c.Type != TypeCMS }

// GoString names a channel without its secrets.
func (c Channel) GoString() string { return c.String() }

func (c Config) check(channel Channel) error {
	if levelOf(channel.MinLevel) < 0 {
		return fmt.Errorf("the level is %q; it may be info, warning or error", channel.MinLevel)
	}
	switch channel.Type {
	case TypeMail:
		if c.Mail == nil {
			return errors.New("no mail is configured")
		}
		return nil
	case TypeCMS:
		if c.CMS == nil {
			return errors.New("no CMS is configured")
		}
		return nil
	case TypeSlack, TypeDiscord, TypeTelegram, TypeTeams, TypeGeneric:
		if u, err := url.Parse(channel.URL); err != nil || u.Host == "" {
			return errors.New("its url is not an address like https://example.com/hook")
		}
		if channel.Type == TypeTelegram && channel.Chat == "" {
			return errors.New("it needs the chat that the bot writes to")
		}
	default:
		return fmt.Errorf("its type is %q; known are mail, cms, slack, discord, telegram, teams and generic",
			channel.Type)
	}
	if c.Client == nil {
		return errors.New("no HTTP client is configured")
	}
	return nil
}
