package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

// server is what -only names.
type server struct {
	name  string
	start func() (*servers.Server, error)
}

// onServer measures all there is to measure on one server.
func (o *options) onServer(ctx context.Context, r *results, which server) error {
	if which.name == "sqlite" {
		return o.onSQLite(ctx, r)
	}
	s, err := which.start()
	if err != nil {
		return err
	}
	defer s.Stop()
	t := &site{server: s}
	if t.db, t.dsn, t.name, err = s.CMS(ctx); err != nil {
		return err
	}
	defer t.db.Close()
	if err := o.besideLoop(ctx, r, t); err != nil {
		return err
	}
	for _, n := range o.processes {
		for _, how := range o.setups() {
			f, err := o.ours(ctx, t, n, how)
			if err != nil {
				return err
			}
			r.add(s.Name, how.String(), n, f)
		}
		if err := o.manyLoops(ctx, r, t, n); err != nil {
			return err
		}
		if o.beside("laravel") && s.Name != "PostgreSQL" {
			if err := o.besideLaravel(ctx, r, t, n); err != nil {
				return fmt.Errorf("%d of Laravel's workers: %w", n, err)
			}
		}
	}
	if s.Name == "PostgreSQL" {
		return o.besidePeers(ctx, r, s)
	}
	return nil
}

func (o *options) besideLaravel(ctx context.Context, r *results, t *site, n int) error {
	f, err := t.laravel(ctx, n, max(o.jobs/12, 100*n))
	if errors.Is(err, errAbsent) {
		r.absent = append(r.absent, "Laravel's workers are "+err.Error())
		return nil
	}
	if err == nil {
		r.add(t.server.Name, laravelName, n, f)
	}
	return err
}

// onSQLite measures one process: a file has one writer.
func (o *options) onSQLite(ctx context.Context, r *results) error {
	dir, err := os.MkdirTemp("", "cmsjobs-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &site{server: servers.SQLite(dir)}
	if t.db, t.dsn, t.name, err = t.server.CMS(ctx); err != nil {
		return err
	}
	defer t.db.Close()
	return o.besideLoop(ctx, r, t)
}
