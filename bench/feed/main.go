package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
	"github.com/cmsjobs/cmsjobs/bench/servers"
	"github.com/cmsjobs/cmsjobs/internal/feed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	b := bench{}
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	flag.IntVar(&b.jobs, "jobs", 300, "jobs of a measurement")
	flag.IntVar(&b.others, "others", 5000, "rows of another table that are inserted a second while a server's log "+
		"is measured again")
	flag.DurationVar(&b.idle, "idle", 20*time.Second, "length of a measurement of what nothing costs")
	flag.StringVar(&b.only, "only", "", "only scenes whose name holds this")
	flag.Parse()
	head, err := page.Begin(ctx, time.Now(), *path)
	var text string
	if err == nil {
		text, err = b.run(ctx, head)
	}
	stop()
	fmt.Print(text)
	if err == nil && *path != "" {
		err = page.Replace(*path, "feed", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/feed:", err)
		os.Exit(1)
	}
}

type bench struct {
	jobs, others int
	idle         time.Duration
	only         string
}

// scene is one way to notice a row, on one database.
type scene struct {
	name   string
	start  func() (*servers.Server, error)
	source func(*site) feed.Source // of every insert; nil: none
	socket bool                    // the program that inserts sends a datagram
	row    bool                    // with the row, as the Laravel package does
	looks  bool                    // looks at the usual pace; else only by hints
	others int                     // rows of another table a second
	// published says that PostgreSQL has publications instead of the trigger.
	published bool
}

func (b bench) scenes(dir string) []scene {
	log := func(s *site) feed.Source { return &feed.Binlog{DSN: s.dsn, Schema: s.name, Table: "jobs"} }
	notify := func(s *site) feed.Source { return &feed.Notify{DSN: s.dsn, Table: "jobs"} }
	replication := func(s *site) feed.Source { return &feed.Replication{DSN: s.dsn, Table: "jobs"} }
	files := func(s *site) feed.Source { return &feed.Files{Path: strings.TrimPrefix(s.dsn, "sqlite:")} }
	sqlite := func() (*servers.Server, error) { return servers.SQLite(dir), nil }
	return []scene{
		{name: "MariaDB, looks every 50 ms", start: servers.MariaDB, looks: true},
		{name: "MySQL, looks every 50 ms", start: servers.MySQL, looks: true},
		{name: "PostgreSQL, looks every 50 ms", start: servers.PostgreSQL, looks: true},
		{name: "SQLite, looks every 50 ms", start: sqlite, looks: true},
		{name: "MariaDB, datagram", start: servers.MariaDB, socket: true},
		{name: "MariaDB, datagram with the row", start: servers.MariaDB, socket: true, row: true},
		{name: "MySQL, datagram with the row", start: servers.MySQL, socket: true, row: true},
		{name: "MariaDB, binary log", start: servers.LoggedMariaDB, source: log},
		{name: fmt.Sprintf("MariaDB, binary log, %d other rows/s", b.others), start: servers.LoggedMariaDB,
			source: log, others: b.others},
		{name: "MySQL, binary log", start: servers.LoggedMySQL, source: log},
		{name: fmt.Sprintf("MySQL, binary log, %d other rows/s", b.others), start: servers.LoggedMySQL, source: log,
			others: b.others},
		{name: "PostgreSQL, NOTIFY", start: servers.PostgreSQL, source: notify},
		{name: "PostgreSQL, logical replication", start: servers.LoggedPostgreSQL, source: replication,
			published: true},
		{name: fmt.Sprintf("PostgreSQL, logical replication, %d other rows/s", b.others),
			start: servers.LoggedPostgreSQL, source: replication, published: true, others: b.others},
		{name: "SQLite, file events", start: sqlite, source: files},
	}
}

func (b bench) run(ctx context.Context, head string) (string, error) {
	dir, err := os.MkdirTemp("", "cmsjobs-bench-feed-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	var rows, costs strings.Builder
	for i, s := range b.scenes(dir) {
		if !strings.Contains(s.name, b.only) {
			continue
		}
		row, cost, err := b.scene(ctx, s, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(&rows, "| %s | %s |\n", s.name, row)
		fmt.Fprint(&costs, cost)
	}
	return fmt.Sprintf("%s: `make bench-feed`.\n\nFrom the return of another program's INSERT to the first line of the handler, %d jobs each, "+
		"20 to 60 ms apart, an idle worker of one slot:\n\n"+
		"| database and way | p50 ms | p99 ms | longest ms | by the worker's poll |\n|---|---|---|---|---|\n%s\n"+
		"What it costs while nothing comes, in %% of one core, above that of the server alone:\n\n"+
		"| database | looks | statements/s | service %% | server %% |\n|---|---|---|---|---|\n%s", head, b.jobs,
		rows.String(), costs.String()), nil
}

// scene measures one way, and what the looks cost where it makes any.
func (b bench) scene(ctx context.Context, s scene, dir string) (row, cost string, err error) {
	server, err := s.start()
	if err != nil {
		return "", "", err
	}
	if server.Server != nil {
		defer server.Stop()
	}
	site, err := newSite(ctx, server, dir, s.published)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, site.db.Close()) }()
	if row, err = b.latency(ctx, s, site); err != nil || !s.looks {
		return row, "", err
	}
	cost, err = b.costs(ctx, site)
	return row, cost, err
}
