package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	path := flag.String("page", "", "the page whose table gets each result as soon as it is known")
	control := flag.Bool("control", false, "leave the guards in, and see their tests pass")
	only := flag.String("only", "", "only guards of whom something holds this text; the page keeps what it says of "+
		"the others")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var list []trialResult
	var failed error // of the control
	for _, g := range guards {
		if !g.matches(*only) {
			continue
		}
		if *control {
			failed = errors.Join(failed, g.control(ctx))
			continue
		}
		v, err := g.try(ctx)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", g.promise, g.name, err)
		}
		fmt.Printf("%-4s %-60s %-50s %s (%s)\n", g.promise, g.name, g.test, v.outcome, v.took.Round(time.Second))
		if v.outcome != held {
			fmt.Println(v.said)
		}
		list = append(list, v)
		if err := record(*path, v); err != nil {
			return err
		}
	}
	return errors.Join(failed, missed(list))
}

// record writes a result into the page, if there is one.
func record(path string, v trialResult) error {
	if path == "" {
		return nil
	}
	section, err := page.Section(path, "mutants")
	if err != nil {
		return err
	}
	known := read(section)
	known.note(v, time.Now())
	return page.Replace(path, "mutants", known.report())
}

func (g guard) matches(text string) bool {
	return strings.Contains(strings.Join([]string{g.promise + " ", g.name, g.file, g.test}, "\n"), text)
}
