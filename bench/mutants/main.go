package main

import (
	"context"
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
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	only := flag.String("only", "", "only guards of whom something holds this text; no page is written then")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var list []verdict
	for _, g := range guards {
		if !g.matches(*only) {
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
	}
	text := report(list)
	fmt.Println(text)
	if *path != "" && *only == "" {
		if err := page.Replace(*path, "mutants", text); err != nil {
			return err
		}
	}
	return missed(list)
}

func (g guard) matches(text string) bool {
	return strings.Contains(strings.Join([]string{g.promise + " ", g.name, g.file, g.test}, "\n"), text)
}
