package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
	"github.com/cmsjobs/cmsjobs/bench/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	b := &bench{}
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	flag.IntVar(&b.jobs, "jobs", 8000, "jobs of a measurement of cmsjobs; queue:work gets a quarter")
	flag.IntVar(&b.rounds, "rounds", 5, "how often each is measured, in turns; the medians count")
	flag.BoolVar(&b.short, "short", false, "one round of a few jobs; never writes a page")
	flag.StringVar(&b.program, "program", "bin/cmsjobs", "the service, for pick-ups")
	flag.StringVar(&b.server, "server", "mariadb", "mariadb or mysql")
	flag.BoolVar(&b.drained, "drain", false, "only the jobs that do nothing: what a job costs")
	flag.StringVar(&b.profile, "cpuprofile", "", "a file for the profile of cmsjobs while they run")
	flag.Parse()
	if b.short {
		b.jobs, b.rounds = 800, 1
	}
	if b.short || b.drained {
		*path = ""
	}
	var text string
	var err error
	if b.head, err = page.Begin(ctx, time.Now(), *path); err == nil {
		text, err = b.profiled(ctx)
	}
	stop()
	fmt.Print(text)
	if err == nil && *path != "" {
		err = page.Replace(*path, "php", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/php:", err)
		os.Exit(1)
	}
}

type bench struct {
	head            string // of the report
	jobs, rounds    int
	short, drained  bool
	profile         string
	program, server string
}

// found is what a run gave.
type found struct {
	drains         []drain
	nap            nap
	crashes        []time.Duration // until they were known, sorted
	knocked, plain []time.Duration // pick-ups with and without the package's datagram, sorted
}

// profiled is run, with a profile of this program where one is wanted.
func (b *bench) profiled(ctx context.Context) (string, error) {
	if b.profile == "" {
		return b.run(ctx)
	}
	f, err := os.Create(b.profile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return "", err
	}
	defer pprof.StopCPUProfile()
	return b.run(ctx)
}

func (b *bench) run(ctx context.Context) (string, error) {
	start := map[string]func() (*servers.Server, error){"mariadb": servers.MariaDB, "mysql": servers.MySQL}[b.server]
	if start == nil {
		return "", fmt.Errorf("there is no server %q", b.server)
	}
	server, err := start()
	if err != nil {
		return "", err
	}
	defer server.Stop()
	dir, err := os.MkdirTemp("", "cmsjobs-bench-php-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	s, err := newSite(ctx, server, dir)
	if err != nil {
		return "", err
	}
	defer s.db.Close()
	var f found
	steps := []func() error{
		func() error { f.drains, err = s.drains(ctx, b.jobs, b.rounds); return err },
		func() error { f.nap, err = s.naps(ctx, max(b.jobs/20, 100), b.rounds); return err },
		func() error { f.crashes, err = s.crashes(ctx, max(b.jobs/400, 5)); return err },
		func() error { f.knocked, err = s.pickUps(ctx, b.program, max(b.jobs/40, 40), true); return err },
		func() error { f.plain, err = s.pickUps(ctx, b.program, max(b.jobs/40, 40), false); return err },
	}
	if b.drained {
		steps = steps[:1]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return "", err
		}
	}
	return b.report(server.Name, f), nil
}

func (b *bench) report(server string, f found) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: `make bench-php` on %s.\n\n", b.head, server)
	if b.short {
		s.WriteString("A short run: it shows that the measurement works, and its figures mean little.\n\n")
	}
	if !b.drained {
		table(&s, "what | this run | aim | ", f.aims())
	}
	fmt.Fprintf(&s, "Jobs that do nothing, %d rounds in turns, medians. Processor time in µs a job, without the "+
		"start of "+
		"PHP:\n\n", b.rounds)
	rows := [][]string{}
	for _, d := range f.drains {
		rows = append(rows, []string{d.name, fmt.Sprintf("%.0f", d.median.rate()), micro(d.median.php, d.median.jobs),
			micro(d.median.own, d.median.jobs), micro(d.median.server, d.median.jobs),
			micro(d.median.cpu(), d.median.jobs)})
	}
	table(&s, "who | jobs/s | PHP | cmsjobs | server | all", rows)
	if b.drained {
		return s.String()
	}
	fmt.Fprintf(&s, "A job that sleeps 5 ms, one process: %.2f ms each by cmsjobs, %.2f ms by queue:work; the sleep "+
		"alone in a loop of PHP takes %.2f ms.\n\n", ms(f.nap.own), ms(f.nap.stock), ms(f.nap.alone))
	table(&s, "in ms | p50 | longest | of", [][]string{
		spread("a process killed in its job is known and the job settled", f.crashes),
		spread("from the dispatch to the job's first line, with the package's datagram", f.knocked),
		spread("the same without it", f.plain)})
	return s.String()
}

// aims are what the figures should be.
func (f *found) aims() (rows [][]string) {
	add := func(what string, value, aim float64, atMost bool) {
		rows = append(rows, page.Aim{What: what, Value: value, Limit: aim, AtMost: atMost}.Cells())
	}
	for i := 0; i+1 < len(f.drains); i += 2 {
		stock, own := f.drains[i].median, f.drains[i+1].median
		processes := fmt.Sprintf("%d processes", f.drains[i].processes)
		if f.drains[i].processes == 1 {
			processes = "1 process"
		}
		add("jobs a second, "+processes+", cmsjobs : queue:work", own.rate()/stock.rate(), 6, false)
		add("processor time a job, "+processes+", cmsjobs : queue:work", own.each()/stock.each(), 0.2, true)
	}
	add("ms that a run adds to a job of 5 ms", ms(f.nap.own-f.nap.alone), 0.7, true)
	add("ms until a crash is known, the longest", ms(at(f.crashes, 1)), 500, true)
	add("pick-up, ms, p50, with the package's datagram", ms(at(f.knocked, 0.5)), 5, true)
	add("pick-up, ms, p50, without", ms(at(f.plain, 0.5)), 50, true)
	return rows
}

func table(s *strings.Builder, head string, rows [][]string) {
	fmt.Fprintf(s, "| %s |\n|%s\n", head, strings.Repeat("---|", strings.Count(head, "|")+1))
	for _, row := range rows {
		fmt.Fprintf(s, "| %s |\n", strings.Join(row, " | "))
	}
	s.WriteString("\n")
}

func spread(name string, sorted []time.Duration) []string {
	return []string{name, fmt.Sprintf("%.2f", ms(at(sorted, 0.5))), fmt.Sprintf("%.2f", ms(at(sorted, 1))),
		fmt.Sprint(len(sorted))}
}

// at is the value below which this share of sorted times lies.
func at(sorted []time.Duration, part float64) time.Duration {
	return sorted[int(part*float64(len(sorted)-1))]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func micro(d time.Duration, jobs int) string {
	return fmt.Sprintf("%.0f", float64(d.Microseconds())/float64(jobs))
}
