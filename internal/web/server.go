package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/framing"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

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

	Version string
	Now     func() time.Time // needed
	Log     *slog.Logger     // needed
}

func (c Config) withDefaults() Config {
	if c.BodyLimit <= 0 {
		c.BodyLimit = jobs.MaxPayload + 64<<10
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
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

// Server answers HTTP. It is ready when New returns.
type Server struct {
	cfg     Config
	echo    *echo.Echo
	mask    *redact.Rules
	live    *sseHub
	origin  *http.CrossOriginProtection
	pages   *pages
	answers *answers.Cache
	rates   *rates
	// effects is who may make jobs run.
	effects access.Effects
	// failures are those of strangers, for the audit log.
	failures *access.Failures
	// routes are all of them; missing are the parts that they lack.
	routes  []Route
	missing map[string]bool
	texts   *locale.Catalog
}

// New makes a server; it listens nowhere yet.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	mask, err := redact.NewRules(cfg.MaskPaths)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, echo: echo.New(), mask: mask, origin: http.NewCrossOriginProtection(),
		answers: answers.New(cfg.Now, cfg.Log), rates: newRates(cfg.Rate, cfg.Now),
		failures: access.NewFailures(cfg.Gate.Store), effects: effects(cfg),
		routes: Routes(cfg.Features), missing: cfg.missing()}
	if s.texts, err = Texts(cfg.Features); err != nil {
		return nil, err
	}
	s.live = newLive(s)
	if s.pages, err = newPages(s); err != nil {
		return nil, fmt.Errorf("reading the pages' templates: %w", err)
	}
	for _, o := range cfg.AllowedOrigins {
		if err := s.origin.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("allowed origin %q: %w", o, err)
		}
	}
	for _, f := range cfg.Features {
		if f.Collectors == nil {
			continue
		}
		for _, collector := range f.Collectors(cfg) {
			if err := cfg.Metrics.Register(collector); err != nil {
				return nil, fmt.Errorf("registering the metrics of %s: %w", f.Name, err)
			}
		}
	}
	s.echo.JSONSerializer = jsonWriter{}
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.IPExtractor = extractor(cfg.TrustedProxies)
	s.echo.HTTPErrorHandler = s.answerError
	s.echo.Logger.SetOutput(io.Discard) // ours is slog
	s.echo.Use(s.recover, s.headers, s.accessLog, refuseTwoLengths)
	s.mount()
	return s, nil
}

// jsonWriter answers as the command line does, and reads as echo.
type jsonWriter struct{ echo.DefaultJSONSerializer }

// Serialize implements echo.JSONSerializer.
func (jsonWriter) Serialize(c echo.Context, value any, indent string) error {
	return ops.Encode(c.Response(), value, indent)
}

// extractor says whose request it is: the peer, unless the peer is a proxy
// that the configuration trusts.
func extractor(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range trusted {
		p = p.Masked()
		options = append(options,
			echo.TrustIPRange(&net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// Handler is the whole server, for tests and for other servers.
func (s *Server) Handler() http.Handler { return s.echo }

// shutdownGrace is how long requests that run may take when the server stops.
const shutdownGrace = 10 * time.Second

// Serve answers on l until ctx ends, then lets running requests finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	server := &http.Server{
		Handler: s.echo, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: s.cfg.Timeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10,
		ConnContext:    framing.Context,
		BaseContext:    func(net.Listener) context.Context { return streams },
		ErrorLog:       slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { s.live.run(inner) })
	wg.Go(func() { s.sweep(inner) })
	wg.Go(func() { s.Warm(inner) })
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(framing.Listen(l)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	if err := s.failures.Flush(context.WithoutCancel(ctx)); err != nil {
		s.cfg.Log.Warn("failed sign-ins not written to the audit log", "event", "audit.write_failed", "error", err)
	}
	s.live.close() // event streams never end by themselves
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return errors.Join(fmt.Errorf("stopping HTTP: %w", err), server.Close())
	}
	return nil
}

// Warm makes the answers that most pages need, one after the other, so that the
// first person finds them. Serve does so when it starts.
func (s *Server) Warm(ctx context.Context) {
	for _, f := range s.cfg.Features {
		if f.Warm == nil {
			continue
		}
		if err := f.Warm(ctx, s.cfg, s.answers); err != nil && ctx.Err() == nil {
			s.cfg.Log.Debug("figures not counted in advance", "event", "web.figures_failed", "feature", f.Name,
				"error", err)
		}
	}
}

// sweepEvery is how often old sessions, keys and audit entries are deleted.
const sweepEvery = time.Hour

func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.cfg.Gate.Store.Sweep(ctx, access.Retention{Audit: s.cfg.AuditFor}); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("old sessions and audit entries not deleted", "event", "audit.clean_failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// refuseTwoLengths refuses what could be read as two requests by a proxy in
// front of us and by us (request smuggling).
func refuseTwoLengths(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !framing.Clear(c.Request()) {
			c.Response().Header().Set("Connection", "close")
			return httpError(http.StatusBadRequest, "Send Content-Length or Transfer-Encoding, not both.")
		}
		return next(c)
	}
}

func (s *Server) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if r := recover(); r != nil {
				if cause, is := r.(error); is && errors.Is(cause, http.ErrAbortHandler) {
					panic(r)
				}
				err = fmt.Errorf("panic: %v\n%s", r, stack())
			}
		}()
		return next(c)
	}
}

// ContentPolicy lets pages load from us only, and nobody frame them.
const ContentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " +
	"'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (s *Server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderXRequestID, uuid.NewString())
		h.Set("Content-Security-Policy", ContentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if c.Scheme() == "https" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		return next(c)
	}
}

// quiet paths are asked every few seconds by machines: no line in the log.
func quiet(path string) bool {
	switch path {
	case "/healthz", "/livez", "/readyz", "/metrics":
		return true
	}
	return false
}

// fromVisitors are the paths that the site's visitors call, not its people.
func fromVisitors(path string) bool {
	return path == "/collect" || strings.HasPrefix(path, "/collect/") || path == "/collect.js"
}

// network is what is left of a shortened address: 24 bits of an IPv4 address,
// 48 of an IPv6 address, which is what one customer of a provider has at most.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	bits := 48
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 24
	}
	short, err := ip.Prefix(bits)
	if err != nil {
		return ""
	}
	return short.Addr().String()
}

// accessLog writes a line for each request. Those of the site's visitors,
// hundreds a second, are logged without an address or with a shortened one, and
// only when debugging unless they failed here.
func (s *Server) accessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := s.cfg.Now()
		if err := next(c); err != nil {
			s.answerError(err, c)
		}
		status := c.Response().Status
		if quiet(c.Path()) && status < 500 {
			return nil
		}
		level := slog.LevelInfo
		fields := []any{"request", c.Response().Header().Get(echo.HeaderXRequestID), "method", c.Request().Method,
			"path", c.Request().URL.Path, "status", status, "bytes", c.Response().Size, "duration",
			s.cfg.Now().Sub(start)}
		switch visitor := fromVisitors(c.Request().URL.Path); {
		case visitor:
			if status < 500 {
				level = slog.LevelDebug
			}
			if s.cfg.ShortenVisitors {
				fields = append(fields, "network", network(c.RealIP()))
			}
		default:
			fields = append(fields, "address", c.RealIP(), "who", who(c).Name)
		}
		s.cfg.Log.With(fields...).Log(c.Request().Context(), level, "request", "event", "http.request")
		return nil
	}
}
