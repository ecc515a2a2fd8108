package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/framing"
)

// New makes a server; it listens nowhere yet.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	mask, err := redact.NewRules(cfg.MaskPaths, cfg.Registry)
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
	s.live = newLive(cfg.Ledger, cfg.History, s.public(), cfg.Log)
	if s.pages, err = newPages(s.texts, cfg.Now, cfg.Features); err != nil {
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
	s.echo.Use(s.recover, s.headers, s.accessLog, s.redirects, refuseTwoLengths)
	s.mount()
	return s, nil
}

// effects is the rule of this installation for who may make jobs run. All that
// makes one run asks mayEnqueue, mayRun, mayRunAgain or runnable: at the place
// of the effect, behind the route's own scope.
func effects(c Config) access.Effects {
	return access.Effects{
		Open:  func(p access.Principal) bool { return passes(c.EnqueueRule, p) },
		Types: c.AllowedTopics, AdminKinds: c.AdminKinds, OperatorKinds: c.OperatorKinds, Payloads: c.Registry,
		Maker: func(jobType string) jobs.Maker {
			entry, _ := c.Registry.Lookup(jobType)
			return entry.Maker
		},
	}
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

func (s *Server) mount() {
	for _, r := range s.routes {
		if s.cfg.APIDisabled && !r.Always {
			continue
		}
		s.echo.Add(r.Method, r.Path, s.cors(r, s.authorize(r)))
	}
	if !s.cfg.APIDisabled {
		s.mountPages()
	}
	for path, handler := range s.cfg.Mount {
		s.echo.Any(path, echo.WrapHandler(handler))
	}
	s.mountPreflight()
}

// shutdownGrace is how long requests that run may take when the server stops.
const shutdownGrace = 10 * time.Second

// Serve answers on l until ctx ends, then lets running requests finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.answers.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	s.background(inner, &wg)
	return Listen(ctx, l, s.echo, Listening{Timeout: s.cfg.Timeout, Log: s.cfg.Log, Stop: func() { s.finish(ctx) }})
}

// Run does what a server does beside its answers, until ctx ends: live changes, old
// sessions, figures made in advance. It is for who passes requests to Handler instead
// of calling Serve. When it has returned, event streams have ended.
func (s *Server) Run(ctx context.Context) {
	defer s.answers.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	s.background(ctx, &wg)
	<-ctx.Done()
	s.finish(ctx)
}

func (s *Server) background(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() { s.live.run(ctx) })
	wg.Go(func() { s.sweep(ctx) })
	wg.Go(func() { s.Warm(ctx) })
}

// finish writes what is not written yet and ends event streams, which never end by
// themselves.
func (s *Server) finish(ctx context.Context) {
	if err := s.failures.Flush(context.WithoutCancel(ctx)); err != nil {
		s.cfg.Log.Warn("failed sign-ins not written to the audit log", "event", "audit.write_failed", "error", err)
	}
	s.live.close()
}

// Listening is how Listen serves.
type Listening struct {
	Timeout time.Duration // of reading one request; 0 is 30 s
	Log     *slog.Logger  // needed
	// Stop ends what never ends by itself, before running requests are awaited.
	Stop func()
}

// Listen answers on l until ctx ends, then lets running requests finish.
func Listen(ctx context.Context, l net.Listener, handler http.Handler, o Listening) error {
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: cmp.Or(o.Timeout, requestTimeout),
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ConnContext: framing.Context,
		BaseContext: func(net.Listener) context.Context { return streams },
		ErrorLog:    slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(framing.Listen(l)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	o.Stop()
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
