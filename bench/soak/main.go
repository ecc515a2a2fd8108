package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

func main() {
	length := flag.Duration("time", time.Hour, "how long jobs come in")
	every := flag.Duration("every", 10*time.Second, "from one fault to the next; 0 does no harm")
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	processes := flag.Int("processes", 0, "how many processes share the work, at least; five do in any case")
	keep := flag.Bool("keep", false, "keep the folder with the logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, *length, *every, *processes, *path, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "bench/soak:", err)
		os.Exit(1)
	}
}

// soak is the whole run.
func soak(ctx context.Context, length, every time.Duration, processes int, path string, keep bool) (err error) {
	l, err := newLab(ctx, processes, keep)
	defer func() { err = errors.Join(err, l.close(err != nil)) }()
	if err != nil {
		return err
	}
	if err := l.run(ctx, length, every); err != nil {
		return err
	}
	if err := l.finish(ctx); err != nil {
		return err
	}
	h, err := l.history(ctx)
	if err != nil {
		return err
	}
	text, good := l.report(ctx, h)
	fmt.Print(text)
	if path != "" {
		if err := page.Replace(path, "soak", text); err != nil {
			return err
		}
	}
	if !good {
		return errors.New("the judge found faults")
	}
	return nil
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
