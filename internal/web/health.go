package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/labstack/echo/v4"
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

func (s *Server) alive(c echo.Context) error {
	return c.JSON(http.StatusOK, Health{Status: "ok", Version: s.cfg.Version})
}

// readyTime is how long all checks together may take.
const readyTime = 5 * time.Second

func (s *Server) failing(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	var failing []string
	for _, check := range s.cfg.Ready {
		if err := check.Do(ctx); err != nil {
			failing = append(failing, check.Name)
			s.cfg.Log.Warn("not ready", "event", "health.not_ready", "check", check.Name, "error", err)
		}
	}
	return failing
}

// NotifySystemd tells systemd that the service is ready, feeds its watchdog
// while healthy says nil, and tells it when the service stops. It returns when
// ctx ends; without systemd it only waits.
func NotifySystemd(ctx context.Context, healthy func(context.Context) error) error {
	defer daemon.SdNotify(false, daemon.SdNotifyStopping) //nolint:errcheck // systemd sees the end itself
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return fmt.Errorf("telling systemd that the service is ready: %w", err)
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("reading systemd's watchdog: %w", err)
	}
	if every == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		check, cancel := context.WithTimeout(ctx, every/3)
		if healthy(check) == nil {
			if _, err := daemon.SdNotify(false, daemon.SdNotifyWatchdog); err != nil {
				cancel()
				return fmt.Errorf("feeding systemd's watchdog: %w", err)
			}
		}
		cancel()
	}
}
