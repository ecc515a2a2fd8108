package sites

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// length is how long a test's job runs.
const length = 200 * time.Millisecond

type nothing struct{}

var test = jobs.Kind[nothing]{Name: "test.wait"}

// process is several sites in this process.
type process struct {
	t       *testing.T
	url     string
	log     jobstest.Log
	set     *Set
	mu      sync.Mutex
	open    map[string]*app.Services
	started chan string // site of a job that begins
	running atomic.Int64
	most    atomic.Int64 // that ran at once
	stop    context.CancelFunc
	ended   chan error
}

// database makes a database with a jobs table and returns its DSN.
func database(t *testing.T, engine jobstest.Engine) string {
	t.Helper()
	db := jobstest.Open(t, engine)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	return db.DSN
}

func write(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cmsjobs.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// start runs the sites of a configuration until the test ends.
func start(t *testing.T, yaml string) *process {
	t.Helper()
	p := &process{t: t, open: map[string]*app.Services{}, started: make(chan string, 10_000), ended: make(chan error, 1)}
	if !strings.Contains(yaml, "queue: {") { // the race detector multiplies what the tests take
		yaml = "queue: {memory: 0}\n" + yaml
	}
	file := write(t, yaml)
	load := func(site string) (*config.Loaded, error) { return config.Load(config.Sources{File: file, Site: site}) }
	shared, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	proc := &app.Process{Version: "test", Err: &p.log, Now: time.Now}
	front, err := NewFront(shared.Sites, shared, proc)
	if err != nil {
		t.Fatal(err)
	}
	p.set = &Set{Names: shared.Sites, Load: load, Front: front, Slots: shared.Process.Slots, Now: time.Now,
		Log: proc.Logger(shared.Log), Do: p.do,
		Open: func(ctx context.Context, l *config.Loaded) (*app.Services, error) {
			r, err := proc.Open(ctx, l)
			if err == nil {
				jobs.Handle(r.Registry, test, func(ctx context.Context, _ jobs.Job, _ nothing) error {
					now := p.running.Add(1)
					defer p.running.Add(-1)
					for old := p.most.Load(); now > old && !p.most.CompareAndSwap(old, now); old = p.most.Load() {
					}
					p.started <- l.Site
					select {
					case <-ctx.Done():
					case <-time.After(length):
					}
					return ctx.Err()
				})
			}
			return r, err
		}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		var both sync.WaitGroup
		both.Go(func() { _ = front.Serve(ctx, l) })
		err := p.set.Run(ctx)
		stop()
		both.Wait()
		p.ended <- err
	}()
	t.Cleanup(p.end)
	return p
}

func (p *process) end() {
	p.stop()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("the sites ended with %v", err)
		}
	case <-time.After(time.Minute):
		p.t.Error("the sites did not end within a minute")
	}
}

func (p *process) do(ctx context.Context, r *app.Services) error {
	parts, err := r.Parts(func(func()) {})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.open[r.Config.Site] = r
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, r.Config.Site)
	}()
	return app.Together(ctx, parts)
}

// site waits until a site is open.
func (p *process) site(name string) *app.Services {
	p.t.Helper()
	var r *app.Services
	p.until("the site "+name+" is open", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		r = p.open[name]
		return r != nil
	})
	return r
}

// until asks again and again, for at most a minute.
func (p *process) until(what string, holds func() bool) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("never: %s\n%s", what, p.log.String())
		}
	}
}

// status is that of a GET below the address of the process.
func (p *process) status(path string) int {
	p.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout: 30 * time.Second}
	answer, err := client.Get(p.url + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// delays enqueues one job in each site, one after the other, and returns how long each
// waited for its start.
func (p *process) delays(names []string) []time.Duration {
	p.t.Helper()
	var all []time.Duration
	for _, name := range names {
		r := p.site(name)
		begin := time.Now()
		if _, err := r.Store.Enqueue(p.t.Context(), test.New(nothing{})); err != nil {
			p.t.Fatal(err)
		}
		limit := time.After(time.Minute)
		for got := ""; got != name; {
			select {
			case got = <-p.started:
			case <-limit:
				p.t.Fatalf("the job of %s never began\n%s", name, p.log.String())
			}
		}
		all = append(all, time.Since(begin))
	}
	slices.Sort(all)
	return all
}

// A flood in one of ten sites delays a job of another by one run at most.
func TestAFloodInOneSiteDelaysTheOthersByOneJob(t *testing.T) {
	for _, engine := range []jobstest.Engine{jobstest.SQLite, jobstest.MySQL} {
		t.Run(string(engine), func(t *testing.T) {
			var yaml strings.Builder
			yaml.WriteString("process: {slots: 2}\nqueue: {concurrency: 20, memory: 0}\nlog: {level: warn}\nsites:\n")
			var names []string
			for i := range 10 {
				names = append(names, fmt.Sprintf("site-%d", i))
				fmt.Fprintf(&yaml, "  %s: {database: {dsn: %q, max_open: 5}}\n", names[i], database(t, engine))
			}
			p := start(t, yaml.String())
			calm := p.delays(names[1:])
			flood := make([]jobs.Spec, 5000)
			for i := range flood {
				flood[i] = test.New(nothing{})
			}
			if _, err := p.site(names[0]).Store.Enqueue(t.Context(), flood...); err != nil {
				t.Fatal(err)
			}
			for range 4 { // it has begun
				if got := <-p.started; got != names[0] {
					t.Fatalf("a job of %s began", got)
				}
			}
			flooded := p.delays(names[1:])
			t.Logf("waits without the flood: %v; beside it: %v", calm, flooded)
			// A first-come line of the flood's 18 waiting jobs would be 1.8 s.
			if most, limit := flooded[len(flooded)-1], calm[len(calm)-1]+length+700*time.Millisecond; most > limit {
				t.Errorf("beside a flood a job waited %s, want at most %s", most, limit)
			}
			if most := p.most.Load(); most != 2 {
				t.Errorf("%d jobs ran at once with two slots", most)
			}
			counted, err := p.site(names[0]).History.Stats(t.Context())
			if err != nil || counted.Queued < 4000 {
				t.Errorf("the flood was over before: %d wait, %v", counted.Queued, err)
			}
		})
	}
}

// One site without its database, one without its folder, and two with the same tables
// end no other; what is repaired runs without a new start.
func TestABrokenSiteStopsNoOther(t *testing.T) {
	good, same := database(t, jobstest.SQLite), database(t, jobstest.SQLite)
	later, folder := filepath.Join(t.TempDir(), "later.sqlite"), filepath.Join(t.TempDir(), "gone")
	p := start(t, fmt.Sprintf(`sites:
  good: {database: {dsn: %q}}
  later: {database: {dsn: 'sqlite:%s'}}
  folder: {cms: {dir: %q}}
  same-a: {database: {dsn: %[4]q}}
  same-b: {database: {dsn: %[4]q}}
`, good, later, folder, same))
	p.delays([]string{"good"})
	for _, part := range []string{"there is no SQLite database", "sites.folder.cms.dir",
		"has the same: each site needs its own"} {
		p.until("the log says "+part, func() bool { return strings.Contains(p.log.String(), part) })
	}
	p.until("three sites are not running", func() bool {
		n := 0
		for _, name := range p.set.Names {
			if p.status("/sites/"+name+"/livez") == http.StatusServiceUnavailable {
				n++
			}
		}
		return n == 3
	})
	for path, want := range map[string]int{"/sites/good/readyz": 200, "/sites/later/readyz": 503, "/readyz": 200,
		"/livez": 200, "/sites/never/admin": 404, "/sites/good/admin": 401, "/metrics": 404} {
		if got := p.status(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	made := jobstest.Open(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), made.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := made.Exec("VACUUM INTO ?", later); err != nil {
		t.Fatal(err)
	}
	p.delays([]string{"later"})
	if got := p.status("/sites/later/livez"); got != http.StatusOK {
		t.Errorf("the repaired site answers %d", got)
	}
}

// Ten sites without work cost a MySQL server few statements and connections.
func TestTenIdleSitesCostLittle(t *testing.T) {
	server := jobstest.OwnMySQL(t)
	root := server.RootMySQL(t)
	var yaml strings.Builder
	// The probe is that of a queue without a job for half a minute.
	yaml.WriteString("log: {level: warn}\nqueue: {memory: 0}\nfeed: {probe: 500ms}\nsites:\n")
	for i := range 10 {
		name := fmt.Sprintf("site_%d", i)
		if _, err := root.Exec("CREATE DATABASE " + name); err != nil {
			t.Fatal(err)
		}
		db, err := sqlx.Open("mysql", server.MySQLDSN(name))
		if err != nil {
			t.Fatal(err)
		}
		_, err = tables.CreateTables(t.Context(), db, tables.Stock, "")
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&yaml, "  site-%d: {database: {dsn: %q}}\n", i, server.MySQLDSN(name))
	}
	p := start(t, yaml.String())
	for _, name := range p.set.Names {
		p.site(name)
	}
	figure := func(name string) (n int64) {
		t.Helper()
		if err := root.QueryRow("SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(new(string), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const span, most = 15 * time.Second, 8
	var rate, connections float64
	for range 4 { // what ten starts ask is over at some time; a length of time is what is measured
		before := figure("Questions")
		time.Sleep(span)
		rate = float64(figure("Questions")-before) / span.Seconds() / 10
		connections = float64(figure("Threads_connected")-1) / 10
		t.Logf("a site: %.1f statements a second, %.1f connections", rate, connections)
		if rate <= most && connections <= most {
			return
		}
	}
	t.Errorf("an idle site costs %.1f statements a second and %.1f connections, want %d at most of each", rate, connections,
		most)
}
