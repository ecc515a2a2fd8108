package config

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Analytics says whether page views are collected, and how long they are kept.
type Analytics struct {
	Collect   bool              `koanf:"collect"`
	Hosts     []string          `koanf:"hosts"`
	HonourDNT bool              `koanf:"honour_dnt"`
	KeepRaw   time.Duration     `koanf:"keep_raw"`
	MMDB      string            `koanf:"mmdb"`
	Rate      int               `koanf:"rate"` // views a minute from one address
	Buffer    int               `koanf:"buffer"`
	Weekly    bool              `koanf:"weekly"`     // a mail every Monday
	WeeklyTo  []string          `koanf:"weekly_to"`  // else mail.admin, else the CMS's admin_email
	ServerKey Secret            `koanf:"server_key"` // "" closes POST /collect/server
	Goals     []Goal            `koanf:"goals"`
	Table     string            `koanf:"table"`
	Columns   map[string]string `koanf:"columns"`
	// LogAddress is what the service's log has of a visitor's address: drop, shorten.
	LogAddress string `koanf:"log_address"`
}

// Goal is a page or an event that visits are meant to reach.
type Goal struct {
	Name  string `koanf:"name"`
	Path  string `koanf:"path"`  // of the page, with * for any characters
	Event string `koanf:"event"` // or its name
}

func defaultAnalytics() Analytics {
	return Analytics{HonourDNT: true, LogAddress: "drop", KeepRaw: 90 * day, Rate: 300, Buffer: 10000,
		Columns: map[string]string{}}
}

func (a Analytics) check(r *report) {
	r.oneOf("analytics/log_address", a.LogAddress, "drop", "shorten")
	r.atLeastFor("analytics/keep_raw", a.KeepRaw, 0)
	r.between("analytics/rate", a.Rate, 1, 1_000_000)
	r.between("analytics/buffer", a.Buffer, 100, 10_000_000)
	if key := a.ServerKey.Reveal(); key != "" && len(key) < minServerKey {
		r.add("analytics/server_key", "it has %d characters, and needs %d: openssl rand -hex 32", len(key),
			minServerKey)
	}
	a.checkGoals(r)
	if a.Table == "" && len(a.Columns) > 0 {
		r.add("analytics/columns", "columns are mapped, but analytics.table names no table")
	}
}

// What an event's name may have, and how many goals each view is compared with.
const (
	maxEventName = 64
	maxGoals     = 100
)

func (a Analytics) checkGoals(r *report) {
	if len(a.Goals) > maxGoals {
		r.add("analytics/goals", "there are %d goals, and may be %d", len(a.Goals), maxGoals)
	}
	names := map[string]bool{}
	for i, g := range a.Goals {
		path := fmt.Sprintf("analytics/goals/%d", i)
		switch {
		case strings.TrimSpace(g.Name) == "" || utf8.RuneCountInString(g.Name) > 100:
			r.add(path, "a goal needs a name, of 100 characters at most")
		case names[g.Name]:
			r.add(path, "two goals have the name %q", g.Name)
		case (g.Path == "") == (g.Event == ""):
			r.add(path, "the goal %q needs either path or event", g.Name)
		case g.Path != "" && (!strings.HasPrefix(g.Path, "/") || strings.ContainsAny(g.Path, "?#")):
			r.add(path, "the path of the goal %q begins with / and ends before ? and #: /order/thanks", g.Name)
		case utf8.RuneCountInString(g.Event) > maxEventName || strings.TrimSpace(g.Event) != g.Event:
			r.add(path, "the event of the goal %q has %d characters at most, and no blanks around it", g.Name,
				maxEventName)
		}
		names[g.Name] = true
	}
}

// minServerKey keeps keys from being guessed.
const minServerKey = 24
