package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func WaitForJobs(ctx context.Context, r *app.Services, list []Job) error {
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		all, err := Outcomes(ctx, r, list)
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
