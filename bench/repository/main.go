package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	b := bench{}
	path := flag.String("page", "", "the page whose section is replaced; the report is printed in any case")
	step := flag.String("step", "", "run one step of ours: first, unchanged, changed, verify, restore")
	flag.StringVar(&b.dir, "dir", "", "the folder to work in; a new one when empty")
	flag.IntVar(&b.files, "files", 20_000, "files of the corpus")
	flag.Int64Var(&b.bytes, "bytes", 2_000_000_000, "bytes of the corpus")
	flag.StringVar(&b.identity, "identity", "", "with -step: the age identity, where the repository is encrypted")
	flag.Parse()
	var text string
	var err error
	if *step != "" {
		err = b.own(ctx, *step)
	} else {
		text, err = b.run(ctx, *path)
	}
	stop()
	fmt.Print(text)
	if err == nil && *path != "" {
		err = page.Replace(*path, "repository", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/repository:", err)
		os.Exit(1)
	}
}

type bench struct {
	dir      string
	files    int
	bytes    int64
	identity string
}

func (b bench) source() string { return filepath.Join(b.dir, "source") }

// steps are what is measured, in order.
var steps = []string{"first", "unchanged", "changed", "verify", "restore"}

// cost is what a step took.
type cost struct {
	wall, cpu time.Duration
	memory    int64  // bytes, at most
	stored    int64  // bytes that the repository grew by
	says      string // by ours
	err       error
}

// program makes backups: for each step the command line that does it.
type program struct {
	name string
	repo string // below dir
	step func(step, repo, into string) []string
	env  []string
}

func (b bench) run(ctx context.Context, path string) (string, error) {
	head, err := page.Begin(ctx, time.Now(), path)
	if err != nil {
		return "", err
	}
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "cmsjobs-bench-repository-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(dir)
		b.dir = dir
	}
	programs, err := b.programs()
	if err != nil {
		return "", err
	}
	c, err := newCorpus(b.source(), b.files, b.bytes)
	if err != nil {
		return "", fmt.Errorf("writing the corpus: %w", err)
	}
	costs := make([][]cost, len(programs))
	for _, step := range steps {
		if step == "changed" {
			if err := c.change(); err != nil {
				return "", fmt.Errorf("changing the corpus: %w", err)
			}
		}
		pause(ctx)
		for i, p := range programs {
			one := b.measure(ctx, p, step)
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			costs[i] = append(costs[i], one)
			fmt.Fprintf(os.Stderr, "%s, %s: %s %s %v\n", p.name, step, one.wall.Round(10*time.Millisecond), one.says,
				one.err)
		}
	}
	return b.report(head, programs, costs), nil
}

// pause lets the last change become old enough for a file to be taken as at rest.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(2100 * time.Millisecond):
	}
}

var errLeftOut = errors.New("it has no such step")

func (b bench) measure(ctx context.Context, p program, step string) cost {
	repo, into := filepath.Join(b.dir, p.repo), filepath.Join(b.dir, "restored-"+p.repo)
	line := p.step(step, repo, into)
	if line == nil {
		return cost{err: errLeftOut}
	}
	if err := os.MkdirAll(repo, 0o700); err != nil {
		return cost{err: err}
	}
	before, err := size(repo)
	if err != nil {
		return cost{err: err}
	}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...) //nolint:gosec // a program that this one names
	cmd.Env = append(os.Environ(), p.env...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	err = cmd.Run()
	c := cost{wall: time.Since(begun)}
	if err != nil {
		c.err = fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, out.String())
		return c
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.memory = u.Maxrss << 10
	}
	if strings.HasPrefix(p.name, "cmsjobs") {
		c.says = strings.TrimSpace(out.String())
	}
	after, err := size(repo)
	c.stored = after - before
	if step == "restore" {
		err = errors.Join(err, b.compare(ctx, into), os.RemoveAll(into))
	}
	c.err = err
	return c
}

// compare holds what was restored against the source.
func (b bench) compare(ctx context.Context, into string) error {
	restored := into
	for _, below := range []string{"media", b.source()} { // ours, restic's
		if _, err := os.Stat(filepath.Join(into, below)); err == nil {
			restored = filepath.Join(into, below)
		}
	}
	//nolint:gosec // two folders of ours
	if out, err := exec.CommandContext(ctx, "diff", "-rq", b.source(), restored).CombinedOutput(); err != nil {
		return fmt.Errorf("what was restored is not the source: %w: %.500s", err, out)
	}
	return nil
}

func (b bench) report(head string, programs []program, costs [][]cost) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: `make bench-repository`. %d files, %.1f GB that do not compress; a hundredth of the "+
		"files changes. "+
		"Seconds by the clock (seconds of processor time, largest memory in MB, MB stored); pages of files may be "+
		"cached.\n\n",
		head, b.files, float64(b.bytes)/1e9)
	s.WriteString("| who | " + strings.Join(steps, " | ") + " |\n|---" + strings.Repeat("|---", len(steps)) + "|\n")
	for i, p := range programs {
		s.WriteString("| " + p.name)
		for _, c := range costs[i] {
			switch {
			case errors.Is(c.err, errLeftOut):
				s.WriteString(" | –")
			case c.err != nil:
				s.WriteString(" | failed")
			default:
				fmt.Fprintf(&s, " | %.1f (%.1f, %d, %d)", c.wall.Seconds(), c.cpu.Seconds(), c.memory/1e6, c.stored/1e6)
			}
		}
		s.WriteString(" |\n")
	}
	s.WriteString("\nWhat cmsjobs reports of its steps:\n\n")
	for i, step := range steps {
		for n, p := range programs {
			if c := costs[n][i]; c.says != "" {
				fmt.Fprintf(&s, "- %s, %s: %s\n", p.name, step, c.says)
			}
		}
	}
	return s.String()
}
