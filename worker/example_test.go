package worker_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/cmsjobs/cmsjobs/worker"
)

type Invoice struct {
	Number int `json:"number" required:"true"`
}

// A program that runs a type until it is interrupted.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := sql.Open("mysql", os.Getenv("CMS_DSN")) // with parseTime=true and clientFoundRows=true
	if err != nil {
		log.Fatal(err)
	}
	w, err := worker.New(ctx, db, "mysql", worker.Options{Slots: 4})
	if err != nil {
		log.Fatal(err)
	}
	worker.Handle(w, worker.Type{Name: "shop.invoice", Title: "Makes an invoice", MaxAttempts: 5,
		Backoff: []time.Duration{10 * time.Second, time.Minute}, Limit: 2, Rates: []string{"10/s"}}, makeInvoice)
	if err := w.Start(ctx); err != nil {
		log.Fatal(err)
	}
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := w.Stop(ending); err != nil {
		log.Fatal(err)
	}
}

// makeInvoice logs, shows its progress, and leaves a result. An error repeats the job
// later; Permanent fails it at once, and RetryAfter says when to repeat it.
func makeInvoice(ctx context.Context, job worker.Job, p Invoice) error {
	if p.Number < 1 {
		return worker.Permanent(errors.New("invoices begin with 1"))
	}
	worker.Logf(ctx, "invoice %d, attempt %d of %d", p.Number, job.Attempt, job.MaxAttempts)
	worker.Progress(ctx, 1, 2, "drawn")
	if _, err := os.Stat("/dev/usb/lp0"); err != nil {
		return worker.RetryAfter(err, 5*time.Minute)
	}
	return worker.SetResult(ctx, map[string]int{"pages": 1})
}
