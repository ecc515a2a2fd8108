package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
)

// refill leaves n jobs in the table and nothing else.
func (b *bench) refill(ctx context.Context, n int) error {
	if _, err := b.pool.Exec(ctx, "TRUNCATE river_job"); err != nil {
		return err
	}
	c, err := b.client(&river.Config{})
	if err != nil {
		return err
	}
	return b.fill(ctx, c, n)
}

// workers is one of many processes: it says that it is ready, works from the moment
// that a line comes on its input until that ends, and says how many microseconds of
// processor time it used for it.
func (b *bench) workers(ctx context.Context, n int, cooldown time.Duration) error {
	list := river.NewWorkers()
	river.AddWorker(list, &worker{done: new(atomic.Int64), want: -1})
	c, err := b.client(&river.Config{Workers: list, FetchCooldown: cooldown,
		FetchPollInterval: 10 * cooldown,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: n}}})
	if err != nil {
		return err
	}
	if err := b.pool.Ping(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err != nil {
		return err
	}
	before := used()
	if err := c.Start(ctx); err != nil {
		return err
	}
	_, _ = input.ReadString('\n') // its end is what counts
	if err := c.Stop(ctx); err != nil {
		return err
	}
	fmt.Println((used() - before).Microseconds())
	return nil
}
