package analytics

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Config is what analytics needs. Zero options mean the defaults named here.
type Config struct {
	Site   *cms.Site
	DB     *sqlx.DB // where our own tables are
	Now    func() time.Time
	Logger *slog.Logger

	// Hosts are the sites that may be counted; views of other hosts are
	// refused. Empty means the CMS's own host only.
	Hosts []string
	// Countries finds the country of an address ("" when unknown); nil when no
	// database of addresses is configured.
	Countries interface{ Country(netip.Addr) string }
	// NoCountries says why there are none though they were asked for. Views are then
	// counted without countries, and logs are not imported.
	NoCountries error
	// RespectDoNotTrack leaves out visitors who send DNT or Sec-GPC.
	RespectDoNotTrack bool
	// SpamHosts are added to the bundled list.
	SpamHosts []string
	// Goals are what visits may reach.
	Goals []Goal
	// KeepRaw is how long raw rows stay (90 days); 0 keeps them.
	KeepRaw time.Duration
	// Buffer is how many views wait in memory at most (20,000).
	Buffer int
	// PerAddress is how many views a second one address may send (10).
	PerAddress float64
	// TrustedProxies may name the visitor's address in X-Forwarded-For.
	TrustedProxies []netip.Prefix
	// Mapped reads raw views from a table of the owner's instead of ours.
	Mapped *Mapping
	// WeeklyMail makes the mail of analytics.weekly out of the data of the
	// template weekly-analytics; nil switches that kind off.
	WeeklyMail func(data map[string]any) jobs.Spec
	// CountPostViews makes deltas of posts.views stand in where there are no
	// raw rows at all.
	CountPostViews bool
}

// Handler does the work of analytics.
type Handler struct {
	Config
	agents agents
	spam   spamHosts
	salts  *salts
	goals  goals
	names  eventNames
}

// Mapping names the columns of an existing table of raw views, which is then
// rolled up in the place of ours. Table and At are needed, and Visitor or
// Address; the other columns may be "": unknown for every row.
type Mapping struct {
	Table string // whole name, prefix included; in the CMS's database
	At    string // DATETIME in the CMS's zone, or a number of Unix seconds
	// Visitor tells visitors apart; without it Address and Agent do.
	Visitor, Address, Agent                 string
	Path, Referrer, Country, Campaign, Site string
}

var identifier = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// New checks the configuration.
func New(c Config) (*Handler, error) {
	if c.Site == nil || c.DB == nil || c.Now == nil {
		return nil, errors.New("analytics needs the site, a database and a clock")
	}
	if c.Mapped != nil {
		if err := c.Mapped.check(); err != nil {
			return nil, err
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Buffer <= 0 {
		c.Buffer = 20_000
	}
	if c.PerAddress <= 0 {
		c.PerAddress = 10
	}
	goals, err := newGoals(c.Goals)
	if err != nil {
		return nil, err
	}
	return &Handler{Config: c, agents: newAgents(), spam: newSpamHosts(c.SpamHosts), salts: newSalts(c.DB, c.Now),
		goals: goals}, nil
}

// DateRange bounds days, both included, as 2006-01-02 in the CMS's zone.
type DateRange struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// ProcessPayload asks for a roll-up: of a range of days, or, without one, of
// everything that changed since the last.
type ProcessPayload struct {
	DateRange *DateRange `json:"dateRange,omitempty" example:"{\"start\":\"2026-01-01\",\"end\":\"2026-01-31\"}"`
	DryRun    bool       `json:"dryRun,omitempty" default:"false"`
}

// Validate refuses days that are none.
func (p *ProcessPayload) Validate() error {
	if p.DateRange == nil {
		return nil
	}
	for _, day := range []string{p.DateRange.Start, p.DateRange.End} {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			return phrase.Errorf(`dateRange needs "start" and "end" as 2006-01-02`)
		}
	}
	if p.DateRange.End < p.DateRange.Start {
		return phrase.Errorf("dateRange ends before it starts")
	}
	return nil
}

// Process is the type analytics.process.
var Process = jobs.Kind[ProcessPayload]{Name: "analytics.process", Policy: jobs.Policy{
	MaxAttempts: 3,
	Timeout:     30 * time.Minute,
	Backoff:     jobs.Steps(300*time.Second, 600*time.Second, 1200*time.Second),
	Limit:       1,
	Coalesce:    true,
}}

func (m *Mapping) check() error {
	if m.Table == "" || m.At == "" || m.Visitor == "" && m.Address == "" {
		return errors.New("a mapped table of views needs its name, the column of the time, and one of visitor or " +
			"address")
	}
	for _, name := range []string{m.Table, m.At, m.Visitor, m.Address, m.Agent, m.Path, m.Referrer, m.Country,
		m.Campaign, m.Site} {
		if name != "" && !identifier.MatchString(name) {
			return fmt.Errorf("%q is no name of a table or column", name)
		}
	}
	return nil
}
