package jobs_test

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
)

// newGaleraLab is a lab on a three-node cluster, on loopback or on the hosts of
// network. Its observer works on node 0.
func newGaleraLab(t *testing.T, network *jobstest.Network) (*lab, *jobstest.Galera) {
	t.Helper()
	needsACluster(t)
	g, err := jobstest.NewGalera(3, network)
	if err != nil {
		if strings.Contains(err.Error(), "installed") {
			jobstest.Skip(t, "%v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	return newLabOn(t, g.Nodes[0]), g
}

func needsACluster(t *testing.T) {
	t.Helper()
	if !soak() && os.Getenv("CMSJOBS_CLUSTER") == "" {
		t.Skip("a cluster takes a minute to start and to recover: make cluster runs this")
	}
}

// F10: workers on all nodes of a cluster that certifies writes at commit, whose
// row locks are local to a node; one node is killed, one is stopped and goes on.
func TestNothingIsLostOnACluster(t *testing.T) {
	l, g := newGaleraLab(t, nil)
	n := size(1200, 20_000)
	l.enqueue(0, n, effect{Length: 2 * time.Millisecond})
	for _, node := range g.Nodes {
		c := l.config
		c.DSN = node.MySQLDSN("lab")
		startChild(t, c)
	}
	for round := range size(2, 20) {
		time.Sleep(time.Duration(500+rand.IntN(500)) * time.Millisecond)
		i := 1 + round%2 // node 0 is the observer's
		if round%2 == 0 {
			l.fault(0, 15*time.Second)
			if err := g.Nodes[i].Kill(); err != nil {
				t.Logf("killing node %d: %v", i, err)
			}
			if err := g.Restart(i); err != nil {
				t.Fatalf("node %d does not come back: %v\n%s", i, err, g.Log(i))
			}
			continue
		}
		l.fault(0, 15*time.Second)
		if err := g.Nodes[i].Signal(jobstest.Pause); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := g.Nodes[i].Signal(jobstest.Continue); err != nil {
			t.Fatal(err)
		}
	}
	l.sink.await(t, n, 4*time.Minute)
	l.empty()
	l.check(n)
}

// Without faults nothing runs twice, although a lock on one node is not seen on
// another: the claim's conditions and the certification at commit decide.
func TestNothingRunsTwiceOnAHealthyCluster(t *testing.T) {
	l, g := newGaleraLab(t, nil)
	n := size(900, 20_000)
	l.config.Lease = 30 * time.Second
	l.enqueue(0, n, effect{})
	for _, node := range g.Nodes {
		for range 2 {
			c := l.config
			c.DSN = node.MySQLDSN("lab")
			startChild(t, c)
		}
	}
	l.sink.await(t, n, 4*time.Minute)
	l.empty()
	l.check(n)
	if starts := l.starts(); starts != n {
		t.Errorf("%d starts of %d jobs", starts, n)
	}
}

// A host a node: worker and node of each are in a network namespace of their
// own. The cable of one is pulled while jobs run, so that its node leaves the
// cluster and refuses to serve (1047), and is plugged in again.
func TestACutOffHostJoinsAgain(t *testing.T) {
	needsACluster(t)
	network, err := jobstest.NewNetwork(3)
	if err != nil {
		jobstest.Skip(t, "%v", err)
	}
	t.Cleanup(network.Close)
	l, g := newGaleraLab(t, network)
	l.listenOn(network.Address())
	n := size(1500, 20_000)
	l.enqueue(0, n, effect{Length: 5 * time.Millisecond})
	for i, node := range g.Nodes {
		c := l.config
		c.DSN, c.Space = node.MySQLDSN("lab"), network.Space(i)
		startChild(t, c)
	}
	for round := range size(2, 10) {
		host := 1 + round%2 // the observer's database is on host 0
		l.sink.await(t, min(n, (round+1)*100), time.Minute)
		l.fault(0, 40*time.Second) // until it is out, back, and what it ran is known to be dead
		if err := network.Cut(host); err != nil {
			t.Fatal(err)
		}
		l.awaitCluster(g.Nodes[0], "2")
		time.Sleep(3 * time.Second) // work goes on without it
		if err := network.Join(host); err != nil {
			t.Fatal(err)
		}
		l.awaitCluster(g.Nodes[host], "3")
	}
	l.sink.await(t, n, 4*time.Minute)
	l.empty()
	l.check(n)
}

// listenOn moves the observer to an address that the hosts of a network reach.
func (l *lab) listenOn(address string) {
	l.t.Helper()
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		l.t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(l.sink)
	web.Listener.Close()
	web.Listener = listener
	web.Start()
	l.t.Cleanup(web.Close)
	l.config.Sink = web.URL
}

// awaitCluster waits until a node sees so many nodes, itself included, and
// serves.
func (l *lab) awaitCluster(node *jobstest.Server, nodes string) {
	l.t.Helper()
	db, err := sqlx.Open("mysql", node.MySQLDSN(""))
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	last := "no answer"
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var name, size, ready string
		if err := db.QueryRow("SHOW STATUS LIKE 'wsrep_cluster_size'").Scan(&name, &size); err != nil {
			last = err.Error()
			continue
		}
		if err := db.QueryRow("SHOW STATUS LIKE 'wsrep_ready'").Scan(&name, &ready); err != nil {
			last = err.Error()
			continue
		}
		if last = size + " nodes, ready " + ready; size == nodes && ready == "ON" {
			return
		}
	}
	l.t.Fatalf("the cluster did not come to %s nodes: %s", nodes, last)
}

// Schedulers on all nodes ring at the same moments: certification decides who
// has a tick, and each tick has one job.
func TestTicksAreUniqueOnACluster(t *testing.T) {
	l, g := newGaleraLab(t, nil)
	registry := jobs.NewRegistry()
	jobs.Handle(registry, effectKind, func(context.Context, jobs.Job, effect) error { return nil })
	var rings errgroup.Group
	const minutes, instances = 40, 6
	start := time.Now().Add(-minutes * time.Minute)
	for i := range instances {
		store, err := openStore(t.Context(), g.Nodes[i%3].MySQLDSN("lab"), registry, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		clock := &steps{Store: store, now: start}
		s, err := schedule.New(schedule.Config{Ticker: clock, Edits: store, CatchUp: time.Hour,
			Zone: func(context.Context) (*time.Location, error) { return time.UTC, nil },
			Entries: []schedule.Entry{{Name: "every minute", Cron: "* * * * *", Policy: schedule.All, Limit: 100,
				Job: effectKind.New(effect{Key: 1}).On("default")}}})
		if err != nil {
			t.Fatal(err)
		}
		rings.Go(func() error {
			for range minutes {
				clock.now = clock.now.Add(time.Minute)
				for try := 0; ; try++ { // a ring that lost at commit is made up for by the next
					_, err := s.Tick(t.Context())
					if err == nil {
						break
					}
					if try == 20 {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := rings.Wait(); err != nil {
		t.Fatal(err)
	}
	var ticks, enqueued, rows int
	if err := l.db.QueryRow("SELECT COUNT(*), COUNT(DISTINCT uuid) FROM cmsjobs_ticks WHERE tick > ? AND outcome = "+
		"'enqueued'", start.UnixMilli()).Scan(&ticks, &enqueued); err != nil {
		t.Fatal(err)
	}
	if err := l.db.Get(&rows, "SELECT COUNT(*) FROM jobs"); err != nil {
		t.Fatal(err)
	}
	var all int
	if err := l.db.Get(&all, "SELECT COUNT(*) FROM cmsjobs_ticks WHERE outcome = 'enqueued'"); err != nil {
		t.Fatal(err)
	}
	if ticks != minutes || enqueued != minutes || rows != all {
		t.Errorf("%d minutes, %d schedulers on three nodes: %d ticks, %d jobs named, %d jobs for %d ticks in all",
			minutes, instances, ticks, enqueued, rows, all)
	}
	t.Logf("%d schedulers on three nodes, %d minutes: %d ticks, %d jobs", instances, minutes, ticks, enqueued)
}

// steps is a store whose clock the test sets.
type steps struct {
	*queue.Store
	now time.Time
}

func (s *steps) Now(context.Context) (time.Time, error) { return s.now, nil }

// FirstSeen says that every entry was always there.
func (s *steps) FirstSeen(context.Context, map[string]string) (map[string]time.Time, error) {
	return nil, nil
}
