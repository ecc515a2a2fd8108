package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// The parts of the server that an installation may lack, by the name that people
// read when it does. A route that needs one says so, and its handler may rely on it.
const (
	NeedsSettings = "list of settings"
	NeedsHistory  = "history"
)

// requestTimeout is how long one request may take where nobody says more.
const requestTimeout = 30 * time.Second

// missing are the parts that are not configured.
func (c Config) missing() map[string]bool {
	all := map[string]bool{NeedsSettings: c.Settings == nil, NeedsHistory: c.History == nil}
	for _, f := range c.Features {
		for _, name := range f.Missing {
			all[name] = true
		}
	}
	return all
}

// Config is what the server is made of. What is nil and needed by a route answers 404.
type Config struct {
	Enqueuer jobs.Enqueuer         // needed
	Registry *jobs.Registry        // needed
	Ledger   Ledger                // needed
	Gate     *access.Authenticator // needed, with its Store
	History  History

	// Features are the parts of the pages and the API, in the menu's order.
	Features []Feature
	// Settings lists the configuration for people, secrets masked.
	Settings func() []Setting
	// Unavailable knows the errors of a database that does not answer or serves
	// nobody now: the answer is 503 instead of 500. nil knows none.
	Unavailable func(error) bool
	// Metrics is what /metrics shows besides the collectors of features; nil is a
	// registry of the server.
	Metrics *prometheus.Registry
	// Mount puts handlers of other packages under a path (POST /collect); they
	// bound and guard themselves.
	Mount map[string]http.Handler

	// APIDisabled leaves only health and metrics.
	APIDisabled bool
	// EnqueueRule and ManageRule open routes beyond the scopes: "" asks
	// for the scope, "true" for nothing, "@request.auth.id != ''" for anybody
	// who is signed in.
	EnqueueRule, ManageRule string
	// AllowedTopics are the types that may be enqueued over HTTP by others than
	// administrators; empty means any.
	AllowedTopics []string
	// AdminKinds are types that only administrators may make run over HTTP.
	AdminKinds []string
	// OperatorKinds are those types of the service itself that operators may run
	// again, such as deliveries; the others are for administrators.
	OperatorKinds []string
	// PublicMetrics opens /metrics; otherwise it asks for the scope read.
	PublicMetrics bool
	// TrustedProxies may say whose request they forward.
	TrustedProxies []netip.Prefix
	// ShortenVisitors logs the network of a visitor whose view is taken; without
	// it the log has no address of visitors at all.
	ShortenVisitors bool
	// AllowedOrigins may read answers from a browser's other origins; empty: none.
	AllowedOrigins []string
	// MaskPaths name what is hidden in payloads, beside keys that look like
	// secrets: "mail.send:body", "*.card.number".
	MaskPaths []string

	// BodyLimit in bytes; 0 is jobs.MaxPayload and a little.
	BodyLimit int64
	// Timeout of one request, but for streams; 0 is 30 s.
	Timeout time.Duration
	// PageLimit is the longest page; 0 is 500.
	PageLimit int
	// Rate is how many requests a second one caller may make, over ten seconds,
	// in this process; 0 is any number.
	Rate int
	// AuditFor is how long the audit log is kept; 0 is 365 days.
	AuditFor time.Duration

	// Base is the path below which a server in front passes requests on, without it,
	// to this one: "/sites/shop-a". Pages and redirects name it. Sites lists the sites
	// of the process that a request has a session of; nil where there is one.
	Base  string
	Sites func(*http.Request) []SiteLink

	Version string
	Now     func() time.Time // needed
	Log     *slog.Logger     // needed
}

func (c Config) withDefaults() Config {
	if c.BodyLimit <= 0 {
		c.BodyLimit = jobs.MaxPayload + 64<<10
	}
	if c.Timeout <= 0 {
		c.Timeout = requestTimeout
	}
	if c.PageLimit <= 0 {
		c.PageLimit = 500
	}
	if c.AuditFor <= 0 {
		c.AuditFor = 365 * 24 * time.Hour
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	return c
}

func (c Config) check() error {
	for name, missing := range map[string]bool{"Enqueuer": c.Enqueuer == nil, "Registry": c.Registry == nil,
		"Ledger": c.Ledger == nil,
		"Gate":   c.Gate == nil || c.Gate.Store == nil, "Now": c.Now == nil, "Log": c.Log == nil} {
		if missing {
			return fmt.Errorf("the web server needs %s", name)
		}
	}
	for name, rule := range map[string]string{"enqueue_rule": c.EnqueueRule, "manage_rule": c.ManageRule} {
		if !knownRule(rule) {
			return fmt.Errorf("%s is %q; it may be empty, \"true\" or \"@request.auth.id != ''\"", name, rule)
		}
	}
	return nil
}

// The rules that open routes beyond the scopes of tokens.
const (
	ruleScope  = ""
	rulePublic = "true"
	ruleKnown  = "@request.auth.id != ''"
)

func knownRule(rule string) bool {
	return rule == ruleScope || rule == rulePublic || strings.ReplaceAll(rule, `"`, `'`) == ruleKnown
}

// passes says whether a rule lets a principal in whose scopes do not.
func passes(rule string, p access.Principal) bool {
	switch strings.ReplaceAll(rule, `"`, `'`) {
	case rulePublic:
		return true
	case ruleKnown:
		return p.Known()
	}
	return false
}
