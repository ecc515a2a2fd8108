package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"log"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mikestefanello/backlite"
	_ "modernc.org/sqlite" // the driver that cmsjobs uses too
)

type noop struct{}

// Config keeps finished tasks without their data, as a line of history.
func (noop) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "noop", MaxAttempts: 3, Timeout: time.Minute, Backoff: time.Second,
		Retention: &backlite.Retention{Duration: time.Hour}}
}

// line is one figure.
type line struct {
	Name      string  `json:"name"`
	Jobs      int     `json:"jobs"`
	Seconds   float64 `json:"seconds"`
	ClientCPU float64 `json:"clientCpu"` // seconds
}

func main() {
	path := flag.String("path", "", "a file to be made")
	n := flag.Int("jobs", 2000, "jobs")
	slots := flag.Int("slots", 500, "tasks at once")
	flag.Parse()
	if err := run(context.Background(), *path, *n, *slots); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path string, n, slots int) error {
	db, err := sql.Open("sqlite", "file:"+path+
		"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer db.Close()
	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: slots, ReleaseAfter: 10 * time.Minute,
		CleanupInterval: time.Hour})
	if err != nil {
		return err
	}
	if err := client.Install(); err != nil {
		return err
	}
	var done atomic.Int64
	all := make(chan struct{})
	client.Register(backlite.NewQueue(func(context.Context, noop) error {
		if done.Add(1) == int64(n) {
			close(all)
		}
		return nil
	}))
	if err := measure("enqueue 1", n/10, func() error {
		for range n / 10 {
			if _, err := client.Add(noop{}).Save(); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	tasks := make([]backlite.Task, n-n/10)
	for i := range tasks {
		tasks[i] = noop{}
	}
	if err := measure("bulk", len(tasks), func() error {
		_, err := client.Add(tasks...).Save()
		return err
	}); err != nil {
		return err
	}
	return measure("drain tuned", n, func() error {
		client.Start(ctx)
		<-all
		client.Stop(ctx) // waits until the last tasks are written
		return nil
	})
}

func measure(name string, n int, work func() error) error {
	cpu, begun := used(), time.Now()
	if err := work(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(line{Name: name, Jobs: n, Seconds: time.Since(begun).Seconds(),
		ClientCPU: (used() - cpu).Seconds()})
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
