package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Notify tells systemd that the service is ready, feeds its watchdog
// while healthy says nil, and tells it when the service stops. It returns when
// ctx ends; without systemd it only waits.
func Notify(ctx context.Context, healthy func(context.Context) error) error {
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
