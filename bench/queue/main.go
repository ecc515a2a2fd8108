package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
	"github.com/cmsjobs/cmsjobs/bench/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	b := &bench{found: figures{}}
	flag.IntVar(&b.jobs, "jobs", 40000, "jobs that are worked off in a measurement")
	flag.BoolVar(&b.short, "short", false, "without the scenes of a million rows and the idle worker; never writes a "+
		"page")
	flag.StringVar(&b.only, "only", "", "these parts alone, with commas: mysql, mariadb, side (MySQL beside "+
		"MariaDB), postgres, sqlite")
	flag.Parse()
	if b.short {
		*path = ""
	}
	var err error
	if b.head, err = page.Begin(ctx, time.Now(), *path); err == nil {
		err = b.run(ctx)
	}
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
	head    string // of the report
	jobs    int
	short   bool
	only    string
	tables  []*table
	servers [][]string // a row each: see servers.Settings
	absent  []string
	found   figures
}

// part is what -only names.
type part struct {
	name string
	run  func(context.Context) error
}

func (b *bench) run(ctx context.Context) error {
	wanted := strings.Split(b.only, ",")
	parts := []part{{"mysql", b.mySQL}, {"mariadb", b.mariaDB}, {"side", b.sideBySide}, {"postgres", b.postgres},
		{"sqlite", b.sqlite}}
	for _, name := range wanted {
		if name != "" && !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q", name)
		}
	}
	for _, part := range parts {
		if b.only != "" && !slices.Contains(wanted, part.name) {
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
	fmt.Fprintf(&s, "%s: `make bench-queue`.\n\n", b.head)
	if b.short {
		s.WriteString("A short run: it shows that the measurement works, and its figures mean little.\n\n")
	}
	for _, line := range b.absent {
		fmt.Fprintf(&s, "Not measured: %s.\n\n", line)
	}
	tables := []*table{b.found.targets()}
	if len(b.servers) > 0 {
		tables = append(tables, &table{title: "Servers", note: "What decides the cost of a commit, as each server " +
			"says it of itself; the run ends with an error where MySQL and MariaDB differ.",
			head: append([]string{"server", "version"}, servers.SettingNames...), rows: b.servers})
	}
	for _, t := range append(tables, b.tables...) {
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
