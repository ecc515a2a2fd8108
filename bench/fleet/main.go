package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// options are the command line of the parent.
type options struct {
	jobs      int    // that one measurement works off
	processes []int  // of each measurement
	slots     []int  // of each process
	prefetch  int    // of each process
	queues    string // of each process, with commas
	only      string // the server that is measured; "" is all three
	laravel   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	var child worker
	processes := flag.String("processes", "1,2,4,8,16,32,64", "how many worker processes, one measurement each")
	slots := flag.String("slots", "1,8", "slots of each process, one measurement each")
	short := flag.Bool("short", false, "few jobs and 1 and 4 processes: shows that the measurement works")
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	flag.IntVar(&o.jobs, "jobs", 20_000, "jobs a measurement")
	flag.IntVar(&o.prefetch, "prefetch", 16, "queue.prefetch of each process")
	flag.StringVar(&o.queues, "queues", "cmsjobs,default", "queues of each process")
	flag.StringVar(&o.only, "only", "", "mariadb, mysql or postgresql alone")
	flag.BoolVar(&o.laravel, "laravel", true, "Laravel's workers beside ours")
	flag.StringVar(&child.dsn, "child", "", "be a worker on this database (the program starts itself so)")
	flag.Parse()
	var err error
	if child.dsn != "" {
		child.queues, child.prefetch = strings.Split(o.queues, ","), o.prefetch
		if child.slots, err = strconv.Atoi(*slots); err == nil {
			err = child.run(ctx)
		}
	} else {
		o.processes, o.slots = numbers(*processes), numbers(*slots)
		if *short {
			o.jobs, o.processes = min(o.jobs, 2000), []int{1, 4}
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

func (o *options) run(ctx context.Context, path string) error {
	head, err := page.Begin(ctx, time.Now(), path)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: `make bench-fleet`, %d jobs a measurement.\n\n", head, o.jobs)
	for _, server := range []struct {
		name  string
		start func() (*servers.Server, error)
	}{{"mariadb", servers.MariaDB}, {"mysql", servers.LoggedMySQL}, {"postgresql", servers.PostgreSQL}} {
		if o.only != "" && o.only != server.name {
			continue
		}
		if err := o.onServer(ctx, &b, server.start); err != nil {
			return fmt.Errorf("%s: %w", server.name, err)
		}
	}
	fmt.Print(b.String())
	if path == "" {
		return nil
	}
	return page.Replace(path, "fleet", b.String())
}
