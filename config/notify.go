package config

import "time"

// Notify says how administrators hear of failed jobs, missed ticks and bad
// backups.
type Notify struct {
	Mail     bool          `koanf:"mail"`
	CMS      bool          `koanf:"cms"`
	Every    time.Duration `koanf:"every"` // at most one message a type in this time
	Channels []Channel     `koanf:"channels"`
}

// Channel is a chat that takes messages over HTTP.
type Channel struct {
	Name   string `koanf:"name"` // the type when empty
	Type   string `koanf:"type"` // slack, discord, telegram, teams, generic
	URL    Secret `koanf:"url"`  // such addresses are the key to the chat
	ChatID string `koanf:"chat_id"`
	Level  string `koanf:"level"` // the least that goes here: info, warning, error
}

func defaultNotify() Notify { return Notify{Mail: true, CMS: true, Every: time.Hour} }

// Silent says that nobody is notified.
func (n Notify) Silent() bool { return !n.Mail && !n.CMS && len(n.Channels) == 0 }

func (n Notify) check(r *report) {
	r.atLeastFor("notify/every", n.Every, 0)
	for _, c := range n.Channels {
		r.oneOf("notify/channels", c.Type, "slack", "discord", "telegram", "teams", "generic")
		if c.Level != "" {
			r.oneOf("notify/channels", c.Level, "info", "warning", "error")
		}
		if c.URL == "" {
			r.add("notify/channels", "a %s channel needs its url", c.Type)
		}
	}
}
