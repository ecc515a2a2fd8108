package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

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

// jsonWriter answers as the command line does, and reads as echo.
type jsonWriter struct{ echo.DefaultJSONSerializer }

// Serialize implements echo.JSONSerializer.
func (jsonWriter) Serialize(c echo.Context, value any, indent string) error {
	return ops.Encode(c.Response(), value, indent)
}

// Handler is the whole server, for tests and for other servers.
func (s *Server) Handler() http.Handler { return s.echo }

// Request is one request to a feature: echo's context, and what the server
// knows and does for every page. The caller's right to the route was checked.
type Request struct {
	echo.Context
	server *Server
}

// problemOf is the table, and 503 while the database is unavailable. Its text is
// for callers who are not known, too: it names no address.
func (s *Server) problemOf(err error) *Problem {
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError && s.cfg.Unavailable != nil && s.cfg.Unavailable(err) {
		p = httpError(http.StatusServiceUnavailable, "The database is unavailable. Try again in a few seconds; a "+
			"request with the same Idempotency-Key never makes a second job. If it lasts, start the database or "+
			"check database.dsn: cmsjobs doctor names the cause.")
		p.retryAfter, p.cause = 10, err
	}
	return p
}
