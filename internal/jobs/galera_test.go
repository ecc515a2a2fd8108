package jobs_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// newGaleraLab is a lab on a three-node cluster. Its observer works on node 0.
func newGaleraLab(t *testing.T) (*lab, *jobstest.Galera) {
	t.Helper()
	if !soak() && os.Getenv("CMSJOBS_CLUSTER") == "" {
		t.Skip("a cluster takes a minute to start and to mend itself: make cluster runs this")
	}
	g, err := jobstest.NewGalera(3, nil)
	if err != nil {
		if strings.Contains(err.Error(), "installed") {
			jobstest.Skip(t, "%v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	return newLabOn(t, g.Nodes[0]), g
}

// F10: workers on all nodes of a cluster that certifies writes at commit, whose
// row locks are local to a node; one node is killed, one is stopped and goes on.
func TestNothingIsLostOnACluster(t *testing.T) {
	l, g := newGaleraLab(t)
	n := size(1200, 20_000)
	l.enqueue(0, n, effect{Length: 2 * time.Millisecond})
	for i, node := range g.Nodes {
		c := l.config
		c.DSN, c.Mode = jobstest.MariaDBDSN(node.Port, "lab"), []string{"cas", "skip", "cas"}[i]
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
		if err := g.Nodes[i].Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := g.Nodes[i].Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	l.sink.await(t, n, 4*time.Minute)
	l.empty()
	l.check(n)
}

// Without faults nothing runs twice, although SKIP LOCKED on one node does not
// see the locks of another: the claim's conditions and the certification at
// commit decide.
func TestNothingRunsTwiceOnAHealthyCluster(t *testing.T) {
	l, g := newGaleraLab(t)
	n := size(900, 20_000)
	l.config.Lease = 30 * time.Second
	l.enqueue(0, n, effect{})
	for i, node := range g.Nodes {
		for range 2 {
			c := l.config
			c.DSN, c.Mode = jobstest.MariaDBDSN(node.Port, "lab"), []string{"skip", "cas", "skip"}[i]
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
