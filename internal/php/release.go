package php

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Release says which code a site has: the text changes when another release is put in
// its place, composer writes its autoloader, or its settings are written. dir is the
// folder of its artisan. What cannot be read counts as not there.
func Release(dir string) string {
	var b strings.Builder
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	b.WriteString(dir)
	for _, pattern := range []string{".env", "bootstrap/cache/config.php", "vendor/composer/autoload_*.php",
		"vendor/composer/installed.php"} {
		names, _ := filepath.Glob(filepath.Join(escaped(dir), pattern)) // the pattern is well-formed
		for _, name := range names {
			if info, err := os.Stat(name); err == nil {
				fmt.Fprintf(&b, "\n%s %d %d", name, info.ModTime().UnixNano(), info.Size())
			}
		}
	}
	return b.String()
}

// escaped is a folder as a pattern that only it matches.
func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// releaseEvery is the time between two looks at the release. What a deploy writes must
// be the same twice before processes are replaced: it takes a while.
const releaseEvery = time.Second

// follow replaces the processes when the site's code changes, until ctx ends.
func (p *Pool) follow(ctx context.Context) {
	if p.c.Release == nil {
		return
	}
	running := p.c.Release()
	for seen := running; wait(ctx, releaseEvery); {
		now := p.c.Release()
		if now != running && now == seen {
			p.c.Logger.Info("the site's code has changed: its PHP processes are replaced, each after its job",
				"event", "php.release_changed", "queue", p.c.Queue)
			running = now
			p.replaceAll()
		}
		seen = now
	}
}

// replaceAll has each process of now end when it asks for a job; another takes its place.
func (p *Pool) replaceAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.outdated)
	p.outdated = make(chan struct{})
}

// generation is closed when processes that start now are outdated.
func (p *Pool) generation() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outdated
}
