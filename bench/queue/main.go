package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	b := &bench{found: figures{}}
	flag.IntVar(&b.jobs, "jobs", 40000, "jobs that are worked off in a measurement")
	flag.BoolVar(&b.short, "short", false, "without the scenes of a million rows and the idle worker")
	flag.StringVar(&b.only, "only", "", "mariadb, postgres or sqlite alone")
	flag.Parse()
	err := b.run(ctx)
	stop()
	text := b.report()
	fmt.Print(text)
	if err == nil && *path != "" {
		err = page.Replace(*path, "queue", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/queue:", err)
		os.Exit(1)
	}
}

type bench struct {
	jobs   int
	short  bool
	only   string
	tables []*table
	absent []string
	found  figures
}

func (b *bench) run(ctx context.Context) error {
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"mariadb", b.mariaDB}, {"postgres", b.postgres}, {"sqlite", b.sqlite}} {
		if b.only != "" && b.only != part.name {
			continue
		}
		if err := part.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) report() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %s: `make bench-queue`.\n\n", time.Now().Format(time.DateOnly), page.Machine())
	for _, line := range b.absent {
		fmt.Fprintf(&s, "Not measured: %s.\n\n", line)
	}
	for _, t := range append([]*table{b.found.targets()}, b.tables...) {
		s.WriteString(t.markdown())
	}
	return s.String()
}

func (b *bench) table(title, note string, head ...string) *table {
	t := &table{title: title, note: note, head: head}
	b.tables = append(b.tables, t)
	return t
}

// without notes a peer that is not installed; other errors stay errors.
func (b *bench) without(name string, err error) error {
	if errors.Is(err, errAbsent) {
		b.absent = append(b.absent, name+" ("+errAbsent.Error()+")")
		return nil
	}
	return err
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
