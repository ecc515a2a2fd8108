package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/feed"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
)

// nightEnds is the hour, of the CMS's clock, at which the night ends that began
// at 00:00.
const nightEnds = 6

// watchFeed notices new rows and wakes the workers of this host, until ctx ends or
// stop is called.
func (r *Services) watchFeed(ctx context.Context) (stop func(), err error) {
	c := r.Config.Feed
	source, err := r.ChangeFeed(ctx)
	if err != nil {
		return nil, err
	}
	var sources []feed.Source
	if source != nil {
		sources = append(sources, source)
	}
	var partial []feed.Source
	if path := r.knockPath(); path != "" {
		partial = append(partial, &feed.Knock{Path: path})
	}
	if c.Probe == 0 && len(sources)+len(partial) == 0 {
		return func() {}, nil
	}
	watcher := feed.New(feed.Options{
		Rows: r.tables, Wake: func(queue string) { wake.Call(r.WakeDir, wake.Jobs, queue) }, Dir: r.WakeDir,
		Busy: c.Probe, Idle: c.ProbeIdle, Sources: sources, Partial: partial, Logger: r.Log, Now: r.Now,
		Night: func(now time.Time) bool { return now.In(r.tables.Options.Zone).Hour() < nightEnds },
	})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watcher.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}, nil
}

// ChangeFeed is the feed of the CMS's database that the configuration allows; nil
// where it allows none. Whether it works, its Run says.
func (r *Services) ChangeFeed(ctx context.Context) (feed.Source, error) {
	c := r.Config.Feed
	if c.Mode == "off" {
		return nil, nil
	}
	dsn := cmp.Or(c.DSN, r.Config.Database.DSN)
	table := r.tables.Layout.Table()
	switch database.Of(r.DB).Changes {
	case database.BinaryLog:
		var schema string
		if err := r.DB.GetContext(ctx, &schema, "SELECT DATABASE()"); err != nil {
			return nil, DatabaseError{Err: fmt.Errorf("asking for the database's name: %w", err)}
		}
		return &feed.Binlog{DSN: dsn.Reveal(), Schema: schema, Table: table.Plain}, nil
	case database.Notifications:
		return &feed.Notify{DSN: dsn.Reveal(), Table: table.Name}, nil
	}
	path, _ := dsn.SQLiteFile()
	return &feed.Files{Path: path}, nil
}

// knockPath is where the Laravel package sends its datagrams; "" where nobody
// listens.
func (r *Services) knockPath() string {
	switch path := r.Config.Feed.Socket; {
	case path == "off":
		return ""
	case path != "":
		return path
	case r.Site.Root == "":
		return ""
	}
	dir := filepath.Join(r.Site.Storage(), "framework")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return filepath.Join(dir, "cmsjobs.sock")
}

// JobsTable is the name of the CMS's jobs table: quoted for SQL, and as it is.
func (r *Services) JobsTable() (quoted, plain string) {
	t := r.tables.Layout.Table()
	return t.Name, t.Plain
}
