package app

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/feed"
	"github.com/cmsjobs/cmsjobs/internal/handlers/publish"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
)

// nightEnds is the hour, of the CMS's clock, at which the night ends that began
// at 00:00.
const nightEnds = 6

// watchFeed notices new rows and wakes the workers of this host by call, until ctx ends
// or stop is called.
func (r *Services) watchFeed(ctx context.Context, call func(queue string)) (stop func(), err error) {
	c := r.Config.Feed
	sources, err := r.ChangeFeeds(ctx)
	if err != nil {
		return nil, err
	}
	var partial []feed.Source
	if path := r.knockPath(); path != "" {
		partial = append(partial, &feed.Knock{Path: path})
	}
	if c.Probe == 0 && len(sources)+len(partial) == 0 {
		return func() {}, nil
	}
	watcher := feed.New(feed.Options{
		Rows: r.tables, Wake: call, Dir: r.WakeDir,
		Busy: c.Probe, Idle: c.ProbeIdle, Sources: sources, Partial: partial, Logger: r.Log, Now: r.Now,
		Night: r.night, Content: r.callContent,
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

// night says whether it is night by the CMS's clock.
func (r *Services) night(now time.Time) bool { return now.In(r.tables.Options.Zone).Hour() < nightEnds }

// callContent tells the processes of this host that content may have changed, or
// that a feed works which notices it when it does.
func (r *Services) callContent(changed bool, rows []feed.Row) {
	if changed {
		var about []byte
		for _, row := range rows {
			if len(row.ID) <= longestID {
				about = fmt.Appendf(about, "%s:%s\n", row.Table, row.ID)
			}
		}
		whole := bytes.LastIndexByte(about[:min(len(about), longestCall)], '\n') + 1
		wake.Call(r.WakeDir, wake.Content, string(about[:whole]))
	} else {
		wake.Call(r.WakeDir, wake.Watched, "")
	}
}

// The longest id of a row that is named, and the longest call about content.
const (
	longestID   = 40
	longestCall = 1000
)

// watchContent follows what editors do until ctx ends.
func (r *Services) watchContent(ctx context.Context) error {
	var calls publish.Calls
	ears, err := wake.Listen(r.WakeDir, nil)
	if err != nil {
		r.Log.Info("no wake-ups on this host; changes of content are looked for", "event", "wakeup.unavailable",
			"error", err)
	} else {
		defer ears.Close()
		calls = publish.Calls{Changed: ears.Content(), Rows: ears.Named, Watched: ears.Watched()}
	}
	return r.Handlers.publish.NewWatcher(calls).Run(ctx)
}

// contentTables are the tables whose rows decide what the site shows, as the database
// names them.
func (r *Services) contentTables() []string {
	names := []string{"slugs", "slugs_translations", "meta_boxes", "language_meta", "settings"}
	for _, m := range append(cms.Models(), r.models()...) {
		table := m.WithDefaults().Table
		names = append(names, table, table+"_translations")
	}
	for i := range names {
		names[i] = r.Site.Table(names[i])
	}
	return names
}

// ChangeFeeds are the feeds of the CMS's database that the configuration allows, the
// best first; none where it allows none. Whether they work, their Run says.
func (r *Services) ChangeFeeds(ctx context.Context) ([]feed.Source, error) {
	c := r.Config.Feed
	if c.Mode == "off" {
		return nil, nil
	}
	dsn := cmp.Or(c.DSN, r.Config.Database.DSN)
	switch database.Of(r.DB).Changes {
	case database.BinaryLog:
		var schema string
		if err := r.DB.GetContext(ctx, &schema, "SELECT DATABASE()"); err != nil {
			return nil, DatabaseError{Err: fmt.Errorf("asking for the database's name: %w", err)}
		}
		return []feed.Source{&feed.Binlog{DSN: dsn.Reveal(), Schema: schema, Table: r.tables.Layout.Table().Plain,
			Content: r.contentTables()}}, nil
	case database.Notifications:
		return r.postgresFeeds(ctx, dsn.Reveal())
	}
	path, _ := dsn.SQLiteFile()
	return []feed.Source{&feed.Files{Path: path}}, nil
}

// postgresFeeds are those that somebody has prepared. Where nobody has, NOTIFY says what
// there is to prepare.
func (r *Services) postgresFeeds(ctx context.Context, dsn string) ([]feed.Source, error) {
	table := r.tables.Layout.Table().Name
	notify := &feed.Notify{DSN: dsn, Table: table}
	replication := &feed.Replication{DSN: dsn, Table: table, Content: r.contentTables()}
	switch r.Config.Feed.Mode {
	case "notify":
		return []feed.Source{notify}, nil
	case "replication":
		return []feed.Source{replication}, nil
	}
	trigger, publication, err := feed.Prepared(ctx, r.DB, table)
	switch {
	case err != nil:
		return nil, DatabaseError{Err: err}
	case trigger && publication:
		return []feed.Source{replication, notify}, nil
	case publication:
		return []feed.Source{replication}, nil
	}
	return []feed.Source{notify}, nil
}

// Publications are what PostgreSQL needs for logical replication.
func (r *Services) Publications(ctx context.Context) (*feed.Publication, error) {
	return feed.Publications(ctx, r.DB, r.tables.Layout.Table().Name, r.contentTables())
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
