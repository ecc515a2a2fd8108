package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// site is a CMS's tables, and another program's connection to them.
type site struct {
	*jobstest.Database
	*tables.Tables
	woken chan string
}

// newSite makes the tables in db, or in a new database of the engine.
func newSite(t *testing.T, db *jobstest.Database) *site {
	t.Helper()
	ours, err := database.Connect(t.Context(), database.ConnectOptions{DSN: db.DSN, MaxConnections: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	if err := migrations.Up(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTables(t.Context(), ours, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	opened, err := tables.Open(t.Context(), ours, tables.Options{Registry: jobs.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return &site{db, opened, make(chan string, 1000)}
}

// insert adds a row as PHP does.
func (s *site) insert(t *testing.T, queue string, delay time.Duration) {
	t.Helper()
	_, err := s.Database.Exec(s.Rebind(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES
		(?, '{}', 0, ?, ?)`),
		queue, time.Now().Add(delay).Unix(), time.Now().Unix())
	if err != nil {
		t.Fatal(err)
	}
}

// options are those of a watcher on the site.
func (s *site) options(t *testing.T, sources ...Source) Options {
	return Options{Rows: s.Tables, Wake: func(queue string) { s.woken <- queue }, Dir: t.TempDir(),
		Busy: 20 * time.Millisecond, Idle: 100 * time.Millisecond,
		Sources: sources, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
}

// watch runs a watcher until the test ends or stop is called.
func watch(t *testing.T, o Options) (w *Watcher, stop func()) {
	t.Helper()
	w = New(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(stop)
	return w, stop
}

// woke waits for a call about the queue and fails at other queues.
func (s *site) woke(t *testing.T, queue string) {
	t.Helper()
	select {
	case got := <-s.woken:
		if !strings.Contains(queue, "\n") {
			got, _, _ = strings.Cut(got, "\n") // a row may follow
		}
		if got != queue {
			t.Fatalf("workers of %q were woken, not of %q", got, queue)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("nobody woke the workers of %q", queue)
	}
}

func (s *site) quiet(t *testing.T, why string) {
	t.Helper()
	select {
	case got := <-s.woken:
		t.Errorf("workers of %q were woken %s", got, why)
	default:
	}
}

func TestANewRowWakesTheWorkersOfItsQueue(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSite(t, jobstest.Open(t, engine))
			s.insert(t, "before", 0)
			watch(t, s.options(t))
			s.woke(t, "") // at its start it cannot know what is new
			s.insert(t, "default", 0)
			s.woke(t, "default")
			s.insert(t, "mail", 0)
			s.woke(t, "mail")
		})
	}
}

// A row that is delayed wakes nobody when it comes, and its workers when it is due.
func TestADelayedRowWakesWhenItIsDue(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.SQLite))
	o := s.options(t)
	o.Busy, o.Idle = time.Hour, time.Hour // only the moment itself can wake
	hints := &bell{ring: make(chan Report)}
	o.Sources = []Source{hints}
	watch(t, o)
	s.woke(t, "")
	hints.ring <- Alive
	s.woke(t, "") // a source that begins makes a look, and one more call
	s.insert(t, "later", 3*time.Second)
	due := time.Now().Add(2 * time.Second) // the column holds whole seconds
	hints.ring <- Written
	s.woke(t, "later")
	if early := time.Until(due); early > 100*time.Millisecond {
		t.Errorf("it was woken %v too early", early)
	}
}

// bell is a source that says what a test tells it.
type bell struct {
	ring chan Report
	fail chan error
}

func (*bell) Name() string { return "bell" }

func (b *bell) Run(ctx context.Context, report Told) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-b.ring:
			report(r)
		case err := <-b.fail:
			return err
		}
	}
}

// A hint that comes before its row can be seen is answered all the same, and one
// whose row was committed out of order wakes everybody.
func TestAHintAheadOfItsRow(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.PostgreSQL))
	o := s.options(t)
	o.Busy, o.Idle = time.Hour, time.Hour
	hints := &bell{ring: make(chan Report)}
	o.Sources = []Source{hints}
	watch(t, o)
	s.woke(t, "")
	hints.ring <- Alive
	s.woke(t, "")

	late, err := s.Database.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer late.Rollback()
	if _, err := late.Exec(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('late', '{}',
		0, 0, 0)`); err != nil {
		t.Fatal(err)
	}
	s.insert(t, "default", 0)
	hints.ring <- Inserted
	s.woke(t, "default")
	if err := late.Commit(); err != nil { // its number is below the floor now
		t.Fatal(err)
	}
	hints.ring <- Inserted
	s.woke(t, "")
	hints.ring <- Written // of another table
	s.insert(t, "default", 0)
	hints.ring <- Inserted
	s.woke(t, "default")
	s.quiet(t, "though nothing came")
}

// A hint whose row is seen much later, as on a disk that syncs slowly, is answered
// by one of the later looks.
func TestAHintFarAheadOfItsRow(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.SQLite))
	o := s.options(t)
	o.Busy, o.Idle = time.Hour, time.Hour
	hints := &bell{ring: make(chan Report)}
	o.Sources = []Source{hints}
	w, _ := watch(t, o)
	s.woke(t, "")
	hints.ring <- Alive
	s.woke(t, "")
	before := w.Looks()
	hints.ring <- Written
	for end := time.Now().Add(20 * time.Second); w.Looks() < before+4; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the hint caused no looks")
		}
	}
	s.insert(t, "default", 0)
	s.woke(t, "default")
}

// One process of a host looks; when it ends, another does.
func TestOneProcessOfAHostLooks(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.SQLite))
	o := s.options(t)
	first, stop := watch(t, o)
	s.woke(t, "")
	second := o
	others := make(chan string, 10)
	second.Wake = func(queue string) { others <- queue }
	w, _ := watch(t, second)
	for range 3 {
		s.insert(t, "default", 0)
		s.woke(t, "default")
	}
	if n := w.Looks(); n != 0 {
		t.Errorf("the second asked the database %d times beside the first (%d)", n, first.Looks())
	}
	stop()
	select {
	case <-others:
	case <-time.After(20 * time.Second):
		t.Error("nobody looks after the first ended")
	}
}

// TRUNCATE lets numbers begin at 1 again: rows below the floor are seen after a
// while.
func TestNumbersThatBeginAgain(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.PostgreSQL))
	o := s.options(t)
	clock := time.Now()
	ahead := make(chan time.Duration, 1)
	ahead <- 0
	o.Now = func() time.Time {
		d := <-ahead
		defer func() { ahead <- d }()
		return clock.Add(time.Since(clock) + d)
	}
	watch(t, o)
	s.woke(t, "")
	s.Database.MustExec("SELECT setval('jobs_id_seq', 100000)")
	s.insert(t, "default", 0)
	s.woke(t, "default")
	s.Database.MustExec("TRUNCATE jobs RESTART IDENTITY")
	for len(s.woken) > 0 {
		<-s.woken
	}
	<-ahead
	ahead <- floorEvery
	for range 100 { // the floor is read again at one of these
		s.insert(t, "again", 0)
		select {
		case got := <-s.woken:
			if got == "again" {
				return
			}
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.Error("rows with numbers below the floor were never seen")
}

// failingRows fails with err, where there is one.
type failingRows struct {
	Rows
	mu  sync.Mutex
	err error
	n   int
}

func (d *failingRows) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *failingRows) Arrivals(ctx context.Context, after int64, limit int) ([]tables.Arrival, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n++; d.err != nil {
		return nil, d.err
	}
	return d.Rows.Arrivals(ctx, after, limit)
}

func (d *failingRows) LastNumber(ctx context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n++; d.err != nil {
		return 0, d.err
	}
	return d.Rows.LastNumber(ctx)
}

// After trouble of the database everybody is woken, and hints in the meantime do
// not make the looks frequent.
func TestTroubleOfTheDatabase(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.SQLite))
	o := s.options(t)
	rows := &failingRows{Rows: s.Tables}
	hints := &bell{ring: make(chan Report)}
	o.Rows, o.Sources = rows, []Source{hints}
	watch(t, o)
	s.woke(t, "")
	rows.set(errors.New("unavailable"))
	for range 2000 { // a flood of hints over about two of the pauses
		hints.ring <- Inserted
		time.Sleep(100 * time.Microsecond)
	}
	rows.mu.Lock()
	n := rows.n
	rows.mu.Unlock()
	if n > 50 {
		t.Errorf("%d looks at a database that does not answer", n)
	}
	s.insert(t, "default", 0)
	rows.set(nil)
	s.woke(t, "")
}

// What PHP tells is committed: workers claim it ahead of the look, and once. In a flood
// they wait for the look, and what a server's log tells may not be committed yet.
func TestACommittedInsertWakesBeforeItsLook(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.SQLite))
	o := s.options(t)
	o.Sources, o.Partial = []Source{&bell{}}, []Source{&bell{}}
	w := New(o)
	w.heed(hint{Report: Inserted, by: w.sources[0]})
	s.quiet(t, "by a hint of the server's log")
	w.heed(hint{Report: Written, by: w.sources[1]})
	s.quiet(t, "by a change of another table")
	if wait, looks := w.heed(hint{Report: Inserted, by: w.sources[1]}); wait != behindClaim || !looks {
		t.Errorf("the look comes after %v (%t), want it behind the claim", wait, looks)
	}
	s.woke(t, "")
	if _, looks := w.heed(hint{Report: Inserted, by: w.sources[1]}); looks {
		t.Error("a second datagram puts the look off")
	}
	s.quiet(t, "by a second datagram: the look is near")
	w.turn(t.Context()) // reads the floor
	s.woke(t, "")
	s.insert(t, "default", 0)
	w.heed(hint{Inserted, w.sources[1], "default\n{}"})
	s.woke(t, "default\n{}")
	s.Database.MustExec("UPDATE jobs SET reserved_at = 1")
	w.turn(t.Context())
	s.quiet(t, "by a row that is claimed")
	w.paid = o.Now().Add(time.Minute)
	if wait, _ := w.heed(hint{Report: Inserted, by: w.sources[1]}); wait < 30*time.Second {
		t.Errorf("in a flood the next look comes after %v", wait)
	}
	s.quiet(t, "in a flood")
	w = New(o)
	w.heed(hint{Inserted, w.sources[0], "default\n{}"})
	s.woke(t, "default\n{}") // who claims the row that the log has waits for its commit
}

// A flood of hints makes a bounded number of looks.
func TestAFloodOfHints(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.SQLite))
	o := s.options(t)
	o.Busy, o.Idle = time.Hour, time.Hour
	hints := &bell{ring: make(chan Report)}
	o.Sources = []Source{hints}
	w, _ := watch(t, o)
	s.woke(t, "")
	begun := time.Now()
	for time.Since(begun) < 500*time.Millisecond {
		hints.ring <- Written
	}
	if most := int64(time.Since(begun)/time.Millisecond) + 20; w.Looks() > most {
		t.Errorf("%d looks in %v", w.Looks(), time.Since(begun))
	}
}

func TestPace(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	p := pace{busy: 50 * time.Millisecond, idle: 500 * time.Millisecond, night: func(now time.Time) bool {
		return now.Hour() < 6
	}}
	p.found(start)
	if d := p.next(start.Add(29 * time.Second)); d != 50*time.Millisecond {
		t.Errorf("29 s after news it waits %v", d)
	}
	var waits []time.Duration
	for range 5 {
		waits = append(waits, p.next(start.Add(31*time.Second)))
	}
	if got := fmt.Sprint(waits); got != "[100ms 200ms 400ms 500ms 500ms]" {
		t.Errorf("31 s after news it waits %s", got)
	}
	if d := p.next(start.Add(13 * time.Hour)); d != time.Second {
		t.Errorf("at night it waits %v", d)
	}
	if d := p.next(start.Add(19 * time.Hour)); d != 500*time.Millisecond {
		t.Errorf("in the morning it waits %v", d)
	}
	p.found(start.Add(19 * time.Hour))
	if d := p.next(start.Add(19 * time.Hour)); d != 50*time.Millisecond {
		t.Errorf("after news it waits %v", d)
	}
}

// While a source works and tells everything, looks are rare; when one of them
// finds what the source had not told, they are as frequent as without it.
func TestASourceIsTrustedWhileItTellsEverything(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.SQLite))
	o := s.options(t)
	hints := &bell{ring: make(chan Report), fail: make(chan error)}
	o.Sources = []Source{hints}
	w := New(o)
	now := time.Now()
	if w.wait(now) != o.Busy*2 && w.wait(now) > o.Idle {
		t.Errorf("without a word of the source it waits %v", w.wait(now))
	}
	w.sources[0].report(Alive)
	<-w.hints
	if d := w.wait(now); d != trustedPace {
		t.Errorf("beside a source that lives it waits %v", d)
	}
	if d := w.wait(now.Add(aliveFor + time.Second)); d > o.Idle {
		t.Errorf("beside a source that says nothing it waits %v", d)
	}
	if err := w.readFloor(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.insert(t, "default", 0)
	if d := w.turn(t.Context()); d > o.Idle {
		t.Errorf("beside a source that missed a row it waits %v", d)
	}
	s.insert(t, "default", 0)
	w.sources[0].report(Inserted)
	w.hint = <-w.hints
	if d := w.turn(t.Context()); d != trustedPace {
		t.Errorf("beside a source that tells again it waits %v", d)
	}
}

// What is wrong with a source is logged once until it works again.
func TestTroubleOfASourceIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	w := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now, Sources: []Source{&bell{}}})
	s := w.sources[0]
	events := func() string {
		defer log.Reset()
		return strings.Join(regexp.MustCompile(`event=[a-z.]+`).FindAllString(log.String(), -1), " ")
	}
	for range 3 {
		s.noteTrouble(errors.New("gone"), time.Second)
	}
	if got := events(); got != "event=feed.lost" {
		t.Errorf("logged %s", got)
	}
	s.report(Alive)
	s.report(Alive)
	if got := events(); got != "event=feed.works" {
		t.Errorf("logged %s", got)
	}
	s.noteTrouble(&UnavailableError{What: "no right", Fix: "GRANT"}, time.Second)
	s.noteTrouble(&UnavailableError{What: "no right", Fix: "GRANT"}, time.Second)
	if got := events(); got != "event=feed.unavailable" {
		t.Errorf("logged %s", got)
	}
	s.noteTrouble(errors.New("gone"), time.Second)
	if got := events(); got != "" {
		t.Errorf("logged %s", got)
	}
	s.heard.Store(0) // it ended
	s.report(Alive)
	events()
	for range 2 { // the connection is lost, and then the account may not connect again
		s.noteTrouble(errors.New("gone"), time.Second)
		s.noteTrouble(&UnavailableError{What: "no right", Fix: "GRANT"}, time.Second)
	}
	if got := events(); got != "event=feed.lost event=feed.unavailable" {
		t.Errorf("logged %s", got)
	}
}
