package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

// report is the run in words, for people and for the page; good says whether
// everything that was promised was kept.
func (l *lab) report(ctx context.Context, h history) (text string, good bool) {
	v := judge(h)
	facts, wrong := l.effects(ctx)
	flat, growing := l.memory()
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s: `make soak`, %v long.\n\n", l.begun.Format(time.DateOnly), page.Machine(),
		time.Since(l.begun).Round(time.Minute))
	fmt.Fprintf(&b, "| | |\n|---|---|\n")
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	row("jobs", "%d acknowledged, %d whose INSERT was never answered; %s", v.Acked, v.Unknown, l.kinds(h))
	row("faults", "%s", tally(h.faults))
	row("lost", "%d", len(v.Lost))
	row("twice without a fault", "%d", len(v.Doubled))
	row("again after a fault", "%d", v.Again)
	row("late without a fault", "%d", len(v.Late))
	row("from falling due to the start", "median %v, 99 %% %v, longest %v", v.Median, v.Most, v.Longest)
	row("failed for good", "%d, %d of them though the other side neither refuses nor keeps silent", v.Failed,
		v.Unreasoned)
	row("looks at the accounts", "%d, of which %d did not balance", l.balanced+l.unbalanced, l.unbalanced)
	row("TERM while the server hung", "%s", l.stopped())
	row("circuit breakers opened", "%d", l.opened)
	row("short-lived workers", "%s", l.briefly())
	row("what is there", "%s", strings.Join(facts, "; "))
	row("memory of the process that lived through it", "%s", flat)
	all := slices.Concat(v.Lost, v.Doubled, v.Late, v.Wrong, wrong, l.notes, growing)
	if len(all) > 0 {
		fmt.Fprintf(&b, "\nViolations (%d):\n\n", len(all))
		for _, line := range all[:min(len(all), 60)] {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	return b.String(), len(all) == 0 && v.good()
}

// stopped says how long processes took to end while the server hung.
func (l *lab) stopped() string {
	if len(l.stops) == 0 {
		return "never"
	}
	return fmt.Sprintf("%d times; the process ended %v later at most, its grace period is %v", len(l.stops),
		slices.Max(l.stops).Round(time.Millisecond), grace)
}

// kinds counts what was asked for by kind.
func (l *lab) kinds(h history) string {
	counts := map[string]int{}
	for _, a := range h.asked {
		counts[a.kind]++
	}
	var words []string
	for _, p := range mix {
		words = append(words, fmt.Sprintf("%s %d", p.kind, counts[p.kind]))
	}
	return strings.Join(words, ", ")
}

// memory holds the last quarter of the samples against the second: medians, as
// a picture in work makes a peak at any time.
func (l *lab) memory() (words string, growing []string) {
	n := len(l.samples)
	if n < 16 {
		return fmt.Sprintf("%d samples are too few to say", n), nil
	}
	then, now := middle(l.samples[n/4:n/2]), middle(l.samples[3*n/4:])
	words = fmt.Sprintf("%.1f MiB and %d files in the second quarter, %.1f MiB and %d files in the last",
		float64(then.rssKiB)/1024, then.files, float64(now.rssKiB)/1024, now.files)
	if now.rssKiB > then.rssKiB*11/10+8192 || now.files > then.files+8 {
		growing = append(growing, "memory or files grow: "+words)
	}
	return words, growing
}

func middle(list []sample) sample {
	rss, files := make([]int, len(list)), make([]int, len(list))
	for i, s := range list {
		rss[i], files[i] = s.rssKiB, s.files
	}
	slices.Sort(rss)
	slices.Sort(files)
	return sample{rss[len(rss)/2], files[len(files)/2]}
}
