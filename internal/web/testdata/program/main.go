package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/cmsjobs/cmsjobs/worker"
)

type invoice struct {
	Number int `json:"number" required:"true"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	db, err := sql.Open("sqlite", os.Getenv("DSN"))
	if err != nil {
		return err
	}
	w, err := worker.New(ctx, db, "sqlite", worker.Options{Queue: "default", Slots: 1})
	if err != nil {
		return err
	}
	worker.Handle(w, worker.Type{Name: "shop.invoice", Title: "Makes an invoice", MaxAttempts: 2,
		Backoff: []time.Duration{time.Second}}, makeInvoice)
	if err := w.Start(ctx); err != nil {
		return err
	}
	select {} // until it is killed
}

// exists says whether the test has opened a gate.
func exists(name string) bool {
	_, err := os.Stat(filepath.Join(os.Getenv("GATE"), name))
	return err == nil
}

func makeInvoice(ctx context.Context, _ worker.Job, p invoice) error {
	worker.Logf(ctx, "begins %d", p.Number)
	worker.Progress(ctx, 1, 2, "half way")
	if p.Number == 13 && !exists("repaired") {
		return worker.Permanent(errors.New("13 is refused"))
	}
	for !exists(fmt.Sprint(p.Number)) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return worker.SetResult(ctx, map[string]int{"bytes": p.Number * 10})
}
