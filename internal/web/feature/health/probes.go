package health

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cmsjobs/cmsjobs/internal/web"
)

// Health says whether the service lives or can work. It names what is wrong,
// not why: the log has the cause.
type Health struct {
	Status  string   `json:"status"` // ok, or unready
	Version string   `json:"version,omitempty"`
	Failing []string `json:"failing,omitempty"` // names of checks and conditions
	// Warnings are conditions that hold and leave the service ready.
	Warnings []string `json:"warnings,omitempty"`
}

func alive(req *web.Request) error {
	return req.JSON(http.StatusOK, Health{Status: "ok", Version: req.Version()})
}

// readyTime is how long all checks together may take.
const readyTime = 5 * time.Second

func (p Ports) failing(ctx context.Context, log *slog.Logger) []string {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	var failing []string
	for _, check := range p.Ready {
		if err := check.Do(ctx); err != nil {
			failing = append(failing, check.Name)
			log.Warn("not ready", "event", "health.not_ready", "check", check.Name, "error", err)
		}
	}
	return failing
}

// Failing are the names of the checks that fail now.
func (p Ports) Failing(req *web.Request) []string { return p.failing(req.Ctx(), req.Log()) }

func metrics(req *web.Request) error {
	promhttp.HandlerFor(req.Metrics(), promhttp.HandlerOpts{}).ServeHTTP(req.Response(), req.Request())
	return nil
}
