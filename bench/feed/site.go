package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/feed"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
)

// site is a CMS's database with the service on it.
type site struct {
	server    *servers.Server
	db        *sqlx.DB
	dsn, name string
	dir       string // of the sockets
	store     *queue.Store
	tables    *tables.Tables
	registry  *jobs.Registry
	began     chan time.Time // when a handler began
	ears      *wake.Listener // of the worker
}

var measured = jobs.Kind[struct{}]{Name: "bench.measured", Queue: "default"}

func newSite(ctx context.Context, server *servers.Server, dir string, published bool) (*site, error) {
	s := &site{server: server, dir: dir, registry: jobs.NewRegistry(), began: make(chan time.Time, 1)}
	jobs.Handle(s.registry, measured, func(context.Context, jobs.Job, struct{}) error {
		s.began <- time.Now()
		return nil
	})
	var err error
	if s.db, s.dsn, s.name, err = server.CMS(ctx); err != nil {
		return nil, err
	}
	if database.Of(s.db).Name == database.PostgreSQL {
		if err := s.prepare(ctx, published); err != nil {
			return nil, errors.Join(err, s.db.Close())
		}
	}
	if s.tables, err = tables.Open(ctx, s.db, tables.Options{Registry: s.registry}); err == nil {
		s.store, err = queue.New(ctx, s.tables)
	}
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// prepare makes what PostgreSQL's feeds need: publications, or the trigger.
func (s *site) prepare(ctx context.Context, published bool) error {
	statements := feed.Trigger("jobs")
	if published {
		p, err := feed.Publications(ctx, s.db, "jobs", nil)
		if err != nil {
			return err
		}
		statements = p.Make
	}
	for _, statement := range statements {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// watch runs a watcher until stop is called.
func (s *site) watch(ctx context.Context, o feed.Options) (w *feed.Watcher, stop func()) {
	o.Rows, o.Dir, o.Logger, o.Now = s.tables, s.dir, slog.New(slog.DiscardHandler), time.Now
	o.Wake = func(queue string) { wake.Call(s.dir, wake.Jobs, queue) }
	if s.ears != nil {
		o.Wake = func(queue string) { s.ears.Call(wake.Jobs, queue) }
	}
	w = feed.New(o)
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { w.Run(ctx) })
	return w, func() {
		cancel()
		ended.Wait()
	}
}

// work runs a worker until stop is called.
func (s *site) work(ctx context.Context) (stop func() error, err error) {
	ears, err := wake.Listen(s.dir, s.store.NoteRow, "default")
	if err != nil {
		return nil, err
	}
	w, err := jobs.NewWorker(jobs.Config{Source: s.store, Workers: s.store, Registry: s.registry, Now: time.Now,
		Queues: []string{"default"}, Slots: 1,
		Wake: ears.Jobs(), Info: jobs.WorkerInfo{ID: "bench:1:1", Host: "bench"}, PollMin: poll, PollMax: poll})
	if err != nil {
		return nil, errors.Join(err, ears.Close())
	}
	s.ears = ears
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		s.ears = nil
		return errors.Join(<-ended, ears.Close())
	}, nil
}

// poll is the longest wait of an idle worker, as it is configured by default.
const poll = 3 * time.Second

// latency inserts jobs as another program does and measures when they begin.
func (b bench) latency(ctx context.Context, s scene, site *site) (string, error) {
	o := feed.Options{Busy: 0, Idle: poll}
	if s.looks {
		o.Busy, o.Idle = 50*time.Millisecond, 500*time.Millisecond
	}
	if s.source != nil {
		o.Sources = []feed.Source{s.source(site)}
	}
	// beside the sockets of the workers, which get the wake-ups
	socket := site.dir + ".php"
	if s.socket {
		o.Partial = []feed.Source{&feed.Knock{Path: socket}}
	}
	stopWorker, err := site.work(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = stopWorker() }() // what it says of its end is nothing that was measured
	_, stop := site.watch(ctx, o)
	defer stop()
	php, err := database.Connect(ctx, database.ConnectOptions{DSN: site.dsn, MaxConnections: 3})
	if err != nil {
		return "", err
	}
	defer php.Close()
	time.Sleep(3 * time.Second) // all of it has started
	stopOthers, err := site.others(ctx, php, s.others)
	if err != nil {
		return "", err
	}
	defer stopOthers()
	var took []time.Duration
	for i := range b.jobs {
		time.Sleep(time.Duration(20+i*7%41) * time.Millisecond)
		d, err := site.once(ctx, php, s, socket)
		if err != nil {
			return "", err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	polled := 0
	for _, d := range took {
		if d > time.Second {
			polled++
		}
	}
	ms := func(d time.Duration) string { return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) }
	return fmt.Sprintf("%s | %s | %s | %d", ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1]),
		polled), nil
}

// once inserts one job and waits for its handler.
func (s *site) once(ctx context.Context, php *sqlx.DB, by scene, socket string) (time.Duration, error) {
	now := time.Now().Unix()
	const payload = `{"type":"bench.measured","data":{}}`
	result, err := php.ExecContext(ctx, php.Rebind(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at)
		VALUES ('default', ?, 0, ?, ?)`), payload, now, now)
	inserted := time.Now()
	if err != nil {
		return 0, err
	}
	if by.socket {
		message := "jobs"
		if by.row {
			id, err := result.LastInsertId()
			if err != nil {
				return 0, err
			}
			message = fmt.Sprintf(`jobs default%c{"id":%d,"payload":%q,"available_at":%d,"created_at":%d}`, '\n', id,
				payload, now, now)
		}
		if err := send(socket, message); err != nil {
			return 0, err
		}
	}
	select {
	case at := <-s.began:
		return at.Sub(inserted), nil
	case <-time.After(30 * time.Second):
		return 0, errors.New("a job did not run for 30 s")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// send sends a datagram.
func send(socket, message string) error {
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(message))
	return errors.Join(err, conn.Close())
}

// others inserts rows into another table, 50 a transaction, until stop is called.
func (s *site) others(ctx context.Context, db *sqlx.DB, rate int) (stop func(), err error) {
	if rate == 0 {
		return func() {}, nil
	}
	key := database.Of(db).Choose(database.Variants{MySQL: "BIGINT AUTO_INCREMENT", PostgreSQL: "BIGSERIAL"})
	if _, err := db.ExecContext(ctx, "CREATE TABLE visits (id "+key+" PRIMARY KEY, path VARCHAR(255), agent "+
		"VARCHAR(255))"); err != nil {
		return nil, err
	}
	const together = 50
	row := "('/a/path/of/a/page', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36')"
	statement := "INSERT INTO visits (path, agent) VALUES " + strings.Repeat(row+",", together-1) + row
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(time.Second * together / time.Duration(rate))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, _ = db.ExecContext(ctx, statement) // a load, no more
			}
		}
	})
	return func() {
		cancel()
		ended.Wait()
	}, nil
}

// costs measures what looks cost at each pace, beside nothing at all.
func (b bench) costs(ctx context.Context, s *site) (string, error) {
	idle := func(pace time.Duration) (looks float64, service, server time.Duration) {
		var w *feed.Watcher
		stop := func() {}
		if pace > 0 {
			w, stop = s.watch(ctx, feed.Options{Busy: pace, Idle: pace})
			time.Sleep(time.Second)
		}
		var before int64
		if w != nil {
			before = w.Looks()
		}
		own, theirs := servers.OwnCPU(), s.server.CPU()
		time.Sleep(b.idle)
		service, server = servers.OwnCPU()-own, s.server.CPU()-theirs
		if w != nil {
			looks = float64(w.Looks()-before) / b.idle.Seconds()
		}
		stop()
		return looks, service, server
	}
	_, nothing, alone := idle(0)
	share := func(d time.Duration) float64 { return 100 * max(0, d.Seconds()) / b.idle.Seconds() }
	var text strings.Builder
	for _, pace := range []struct {
		name string
		d    time.Duration
	}{{"every 50 ms, while jobs come", 50 * time.Millisecond}, {"every 500 ms, idle", 500 * time.Millisecond},
		{"every 1 s, at night", time.Second}} {
		looks, service, server := idle(pace.d)
		fmt.Fprintf(&text, "| %s | %s | %.1f | %.2f | %.2f |\n", s.server.Name, pace.name, looks,
			share(service-nothing), share(server-alone))
	}
	return text.String(), ctx.Err()
}
