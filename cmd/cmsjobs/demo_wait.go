package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func waitForJobs(ctx context.Context, r *app.Services, list []demoJob) error {
	look := time.NewTicker(demoPatience)
	defer look.Stop()
	for {
		all, err := outcomes(ctx, r, list)
		if err != nil {
			return err
		}
		if !pending(all) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the jobs were not done in time: %w", ctx.Err())
		case <-look.C:
		}
	}
}
