package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	b := bench{}
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	flag.StringVar(&b.program, "cmsjobs", "bin/cmsjobs", "the program that is measured")
	flag.IntVar(&b.mails, "mails", 1000, "mails of a measurement")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds; the median counts")
	flag.Parse()
	head, err := page.Begin(ctx, time.Now(), *path)
	var text string
	if err == nil {
		text, err = b.run(ctx, head)
	}
	stop()
	fmt.Print(text)
	if err == nil && *path != "" {
		err = page.Replace(*path, "mail", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/mail:", err)
		os.Exit(1)
	}
}

type bench struct {
	program       string
	mails, rounds int
}

// cost is what sending the mails once took: by the clock, and processor time of
// a worker and of its database.
type cost struct{ wall, worker, database time.Duration }

// sender sends the mails once.
type sender struct {
	name string
	send func(context.Context) (cost, error)
}

// run measures every sender in turn, round by round, so that each sees the
// same load of the machine.
func (b bench) run(ctx context.Context, head string) (string, error) {
	dir, err := os.MkdirTemp("", "cmsjobs-bench-mail-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	l, err := newLab(ctx, dir, b)
	if err != nil {
		return "", err
	}
	defer l.close()
	senders := []sender{
		{"Python's smtplib, unsigned", l.smtplib},
		{"go-mail, signed", l.goMail},
		{"cmsjobs, 1 slot (the default)", l.worker(1)},
		{"cmsjobs, 4 slots", l.worker(4)},
		{"cmsjobs, 8 slots", l.worker(8)},
	}
	took := make([][]cost, len(senders))
	for range b.rounds {
		for i, s := range senders {
			d, err := s.send(ctx)
			if err != nil {
				return "", fmt.Errorf("%s: %w", s.name, err)
			}
			if got := l.sink.take(); got != b.mails {
				return "", fmt.Errorf("%s: %d of %d mails arrived", s.name, got, b.mails)
			}
			took[i] = append(took[i], d)
		}
	}
	return b.report(head, senders, took), nil
}

func (b bench) report(head string, senders []sender, took [][]cost) string {
	rates, medians := make([]float64, len(senders)), make([]cost, len(senders))
	for i, list := range took {
		slices.SortFunc(list, func(a, b cost) int { return int(a.wall - b.wall) })
		medians[i] = list[len(list)/2]
		rates[i] = float64(b.mails) / medians[i].wall.Seconds()
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s: `make bench-mail`. %d mails to one SMTP server on this host, without TLS; the median of "+
		"%d rounds.\n\n",
		head, b.mails, b.rounds)
	s.WriteString("| who | mails a second | of the smtplib loop | of the signed loop | worker's CPU, ms a mail | " +
		"database's |\n|---|---|---|---|---|---|\n")
	for i, one := range senders {
		fmt.Fprintf(&s, "| %s | %.0f | %.2f × | %.2f × | %s | %s |\n", one.name, rates[i], rates[i]/rates[0],
			rates[i]/rates[1],
			b.each(medians[i].worker), b.each(medians[i].database))
	}
	return s.String()
}

// each is a time for one mail, in milliseconds.
func (b bench) each(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", d.Seconds()*1000/float64(b.mails))
}
