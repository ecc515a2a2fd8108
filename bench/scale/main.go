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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	rows := flag.Int("rows", 1_000_000, "the deepest queue that is measured")
	calls := flag.Int("calls", 3000, "claims a measurement")
	flag.Parse()
	head, err := page.Begin(ctx, time.Now(), *path)
	var text string
	if err == nil {
		text, err = report(ctx, head, *rows, *calls)
	}
	fmt.Print(text)
	if err == nil && *path != "" {
		err = page.Replace(*path, "scale", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/scale:", err)
		os.Exit(1)
	}
}

// batch is how many rows a claim takes, and slots a worker has, throughout.
const batch = 8

func report(ctx context.Context, head string, rows, calls int) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: `bin/bench/scale`.\n\n", head)
	l, err := newLab(ctx)
	if err != nil {
		return "", err
	}
	defer l.close()
	fmt.Fprintf(&b, "**Measured**, MariaDB: processor time that the server uses for a claim and for the write that "+
		"ends what it got.\n\n")
	fmt.Fprintf(&b, "| waiting rows | claimers at once | rows asked for | claim, µs | end, µs | rows a claim "+
		"| rows/s here |\n|---|---|---|---|---|---|---|\n")
	one, err := l.measure(ctx, rows/10, 1, 1, calls)
	if err != nil {
		return "", err
	}
	b.WriteString(one.row())
	for _, depth := range []int{1000, rows} {
		m, err := l.measure(ctx, depth, 1, batch, calls)
		if err != nil {
			return "", err
		}
		b.WriteString(m.row())
	}
	costs := curve{one: one}
	for _, claimers := range []int{1, 4, 16, 64} {
		m, err := l.measure(ctx, rows/10, claimers, batch, calls)
		if err != nil {
			return "", err
		}
		b.WriteString(m.row())
		costs.points = append(costs.points, m)
	}
	b.WriteString(simulated(costs))
	return b.String(), nil
}

// simulated is the table of the simulation: fleets up to ten thousand processes,
// on the server of the measurement and on one with 32 such cores.
func simulated(costs curve) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n**Simulated** from these: processes with %d slots each, jobs of half a second to one and a "+
		"half, always enough of them; servers with 2 and with 32 cores\n"+
		"like this one's. Busy is the share of slots that run a job; wait is how long a free slot waits for its "+
		"claim. A server never has more\n"+
		"than 64 claims in work at a time (more wait their turn): beyond that nothing was measured.\n\n", batch)
	fmt.Fprintf(&b, "| processes | slots | 2 cores: jobs/s | busy | wait p50 / p99 | 32 cores: jobs/s | busy "+
		"| wait p50 / p99 |\n|---|---|---|---|---|---|---|---|\n")
	for _, workers := range []int{1, 10, 100, 1000, 10_000} {
		fmt.Fprintf(&b, "| %d | %d |", workers, workers*batch)
		for _, cores := range []int{2, 32} {
			o := simulate(fleet{workers: workers, slots: batch, length: time.Second, cores: cores, costs: costs},
				30*time.Second)
			fmt.Fprintf(&b, " %.0f | %.0f %% | %v / %v |", o.rate, 100*o.busy, short(o.median), short(o.most))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func short(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(time.Second)
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}
