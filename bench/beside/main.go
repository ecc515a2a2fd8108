package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

// section is a table of the page.
type section struct {
	name string
	make func(ctx context.Context, peers string) (string, error)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	path := flag.String("page", "", "the page whose sections are replaced; they are printed in any case")
	only := flag.String("only", "pictures,sitemaps,dumps", "which sections")
	flag.Parse()
	failed := false
	peers := nodePeers(ctx)
	for _, s := range []section{{"pictures", pictures}, {"sitemaps", sitemaps}, {"dumps", dumps}} {
		if !strings.Contains(*only, s.name) {
			continue
		}
		head, err := page.Begin(ctx, time.Now(), *path)
		var table string
		if err == nil {
			table, err = s.make(ctx, peers)
		}
		if err == nil {
			text := fmt.Sprintf("%s: `make bench`.\n\n%s", head, table)
			fmt.Println(text)
			if *path != "" {
				err = page.Replace(*path, s.name, text)
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench/beside: %s: %v\n", s.name, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// nodePeers installs what bench/peers/node names and returns its folder; "" where
// there is no npm, or no way to its registry.
func nodePeers(ctx context.Context) string {
	dir, err := filepath.Abs("bench/peers/node")
	if err != nil {
		return ""
	}
	c := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--silent")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "bench/beside: without the peers of Node: %v %s\n", err, out)
		return ""
	}
	return dir
}

// benchmark runs one of a package and returns its lines by name.
func benchmark(ctx context.Context, name, times, folder string, env ...string) (map[string]figures, error) {
	c := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", name, "-benchtime", times, "-timeout", "60m",
		folder)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, out)
	}
	return parse(string(out)), nil
}
