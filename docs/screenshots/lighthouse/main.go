package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cmsjobs/cmsjobs/docs/screenshots/demosite"
)

const program = "docs/screenshots/lighthouse/node_modules/lighthouse/cli/index.js"

// page is what is measured.
type page struct{ name, path string }

// measured are a page's scores on a kind of screen.
type measured struct {
	page, screen string
	report
}

func main() {
	runs := flag.Int("runs", 3, "how often each page is measured; the middle one counts")
	screen := flag.String("screen", "desktop", "desktop, mobile (a phone with a slow processor), or both")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	if err := measure(ctx, *runs, *screen); err != nil {
		fmt.Fprintln(os.Stderr, "lighthouse:", err)
		cancel()
		os.Exit(1)
	}
}

func measure(ctx context.Context, runs int, screen string) error {
	screens := map[string][]string{"desktop": {"desktop"}, "mobile": {"mobile"}, "both": {"desktop", "mobile"}}[screen]
	if screens == nil || runs < 1 {
		return errors.New("-screen is desktop, mobile or both, and -runs at least 1")
	}
	site, err := demosite.Start(ctx)
	if err != nil {
		return err
	}
	defer site.Stop()
	if err := site.Quiet(ctx, 3*time.Minute); err != nil {
		return fmt.Errorf("waiting for the demo's jobs: %w", err)
	}
	pages, err := pagesOf(ctx, site)
	if err != nil {
		return err
	}
	headers, err := headersFile(ctx, site)
	if err != nil {
		return err
	}
	var all []measured
	for _, screen := range screens {
		for _, p := range pages {
			r, err := middle(runs, func() (report, error) {
				r, err := look(ctx, site.Base+p.path, screen, headers)
				if err != nil && ctx.Err() == nil { // Chromium now and then records nothing: "please run … again"
					r, err = look(ctx, site.Base+p.path, screen, headers)
				}
				return r, err
			})
			if err != nil {
				return fmt.Errorf("%s on %s: %w", p.name, screen, err)
			}
			all = append(all, measured{p.name, screen, r})
			fmt.Fprintln(os.Stderr, "lighthouse:", p.name, screen)
		}
	}
	fmt.Print(table(all))
	return tooLow(all)
}

// pagesOf are the pages that people see first and most.
func pagesOf(ctx context.Context, site *demosite.Site) ([]page, error) {
	job, err := site.FirstJob(ctx, "--status", "completed", "--type", "sitemap.generate")
	if err != nil {
		return nil, err
	}
	return []page{{"overview", "/admin"}, {"jobs", "/admin/jobs"}, {"a job", "/admin/jobs/" + job},
		{"backups", "/admin/backups"}}, nil
}

// headersFile is a file with the cookie: a command line could be read by others.
func headersFile(ctx context.Context, site *demosite.Site) (string, error) {
	cookie, err := site.Cookie(ctx)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]string{"Cookie": cookie})
	if err != nil {
		return "", err
	}
	path := filepath.Join(site.Temp, "headers.json")
	return path, os.WriteFile(path, data, 0o600)
}

// look measures a page once. The pages must not be in search engines, so the audit that
// wants them there is left out.
func look(ctx context.Context, at, screen, headers string) (report, error) {
	chromium, err := demosite.Chromium()
	if err != nil {
		return report{}, err
	}
	args := []string{program, at, "--quiet", "--output=json", "--output-path=stdout", "--extra-headers=" + headers,
		"--chrome-flags=--headless=new --no-sandbox", "--skip-audits=is-crawlable",
		"--only-categories=performance,accessibility,best-practices,seo"}
	if screen == "desktop" {
		args = append(args, "--preset=desktop")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", args...)
	node.Env = append(os.Environ(), "CHROME_PATH="+chromium)
	node.Stderr = os.Stderr
	out, err := node.Output()
	if err != nil {
		return report{}, fmt.Errorf("running Lighthouse (npm ci in docs/screenshots/lighthouse installs it): %w", err)
	}
	return read(out)
}
