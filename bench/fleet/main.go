package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// options are the command line of the parent.
type options struct {
	jobs      int    // that one process works off in a measurement; see count
	processes []int  // of each measurement
	slots     []int  // of each process
	prefetch  int    // of each process
	rounds    int    // of the bare loop and ours beside it
	queues    string // of each process, with commas
	only      string // the server that is measured; "" is all
	peers     string // "all", "none", or the one that is measured beside ours
	plain     bool   // MySQL and MariaDB alone, without binary log and instrumentation on both
	short     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	var child worker
	var bare loop
	processes := flag.String("processes", "1,2,4,8,16,32,64", "how many worker processes, one measurement each")
	slots := flag.String("slots", "1,8", "slots of each process, one measurement each")
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	flag.BoolVar(&o.short, "short", false, "few jobs, 1 and 4 processes, one round: shows that the measurement works")
	flag.IntVar(&o.jobs, "jobs", 12_000, "one process gets these jobs and a quarter more, 64 get 17 times as many")
	flag.IntVar(&o.prefetch, "prefetch", 512, "queue.prefetch of each process")
	flag.StringVar(&o.queues, "queues", "cmsjobs,default", "queues of each process")
	flag.IntVar(&o.rounds, "rounds", 3, "turns of the bare loop and ours beside it; 0: none")
	flag.StringVar(&o.only, "only", "", "mariadb, mysql, postgresql or sqlite alone")
	flag.StringVar(&o.peers, "peers", "all", "beside ours: all, none, or one of laravel, river and graphile-worker")
	flag.BoolVar(&o.plain, "plain", false, "MySQL and MariaDB alone, both without binary log and instrumentation: "+
		"what the servers themselves make of the same statements")
	flag.StringVar(&child.dsn, "child", "", "be a worker on this database (the program starts itself so)")
	flag.IntVar(&bare.rows, "loop", 0, "with -child: be the bare loop of so many rows a transaction")
	flag.StringVar(&bare.share, "share", "", "with -loop: its part of the rows, as 0/4; all where none is given")
	flag.StringVar(&bare.server, "server", "", "with -loop: the server's name")
	flag.Parse()
	var err error
	switch {
	case bare.rows > 0:
		bare.dsn = child.dsn
		err = bare.run(ctx)
	case child.dsn != "":
		child.queues, child.prefetch = strings.Split(o.queues, ","), o.prefetch
		if child.slots, err = strconv.Atoi(*slots); err == nil {
			err = child.run(ctx)
		}
	default:
		o.processes, o.slots = numbers(*processes), numbers(*slots)
		if o.short {
			o.jobs, o.processes, o.rounds, *path = min(o.jobs, 1200), []int{1, 4}, 1, ""
		}
		err = o.run(ctx, *path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/fleet:", err)
		os.Exit(1)
	}
}

// numbers reads a list; what is no number is left out.
func numbers(list string) (all []int) {
	for _, word := range strings.Split(list, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(word)); err == nil && n > 0 {
			all = append(all, n)
		}
	}
	return all
}

// beside says whether a peer is measured.
func (o *options) beside(name string) bool { return o.peers == "all" || o.peers == name }

// count is how many jobs n processes get: more for many, who need longer until all of them
// work. The start of 64 processes on two cores takes seconds, and half of what a job costs
// in a measurement of five seconds.
func (o *options) count(n int) int { return o.jobs + o.jobs*n/4 }

func (o *options) run(ctx context.Context, path string) error {
	begun := time.Now()
	head, err := page.Begin(ctx, begun, path)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"all", "none", "laravel", "river", "graphile-worker"}, o.peers) {
		return fmt.Errorf("there is no peer %q", o.peers)
	}
	var r results
	all := []server{{"mariadb", servers.MariaDB}, {"mysql", servers.LoggedMySQL},
		{"postgresql", servers.CrowdedPostgreSQL}, {"sqlite", nil}}
	if o.plain {
		all = []server{{"mariadb", servers.PlainMariaDB}, {"mysql", servers.PlainMySQL}}
	}
	if o.only != "" && !slices.ContainsFunc(all, func(s server) bool { return s.name == o.only }) {
		return fmt.Errorf("there is no server %q", o.only)
	}
	for _, server := range all {
		if o.only != "" && o.only != server.name {
			continue
		}
		if err := o.onServer(ctx, &r, server); err != nil {
			return fmt.Errorf("%s: %w", server.name, err)
		}
	}
	text := o.report(head, &r)
	fmt.Print(text)
	say("the run took %s", time.Since(begun).Round(time.Second))
	if path == "" {
		return nil
	}
	return page.Replace(path, "fleet", text)
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
