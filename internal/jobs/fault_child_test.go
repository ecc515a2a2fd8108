package jobs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// The fault tests start this test binary again as worker processes, which they
// kill, stop and cut off. childConfig reaches them through the environment.
type childConfig struct {
	DSN, Sink    string
	Slots        int
	Lease, Grace time.Duration
	Queues       []string // default: "default"
	Space        string   // the network namespace that it lives in; "" is ours
	CrashAt      string   // one of crashPoints, at which it dies
	CrashOn      int      // the so-manieth time that it comes by
	CrashBy      syscall.Signal
}

const childEnv = "CMSJOBS_TEST_CHILD"

func TestMain(m *testing.M) {
	if raw := os.Getenv(childEnv); raw != "" {
		if err := childMain(raw); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// effect is the payload of the one type that children run: tell the sink, take
// a while, tell it again.
type effect struct {
	Key    int           `json:"key"`
	Length time.Duration `json:"length"`
	Fail   int           `json:"fail"` // so many first attempts fail
}

var effectKind = jobs.Kind[effect]{Name: "test.effect", Queue: "default", Policy: jobs.Policy{
	MaxAttempts: 20, Timeout: time.Minute, Backoff: jobs.Fixed(0)}}

func childMain(raw string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	registry := jobs.NewRegistry()
	var breaks *fragile
	jobs.Handle(registry, effectKind, func(ctx context.Context, j jobs.Job, e effect) error {
		breaks.pass("before the effect")
		defer breaks.pass("after the effect")
		return c.effect(ctx, j, e)
	})
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := openStore(ctx, c.DSN, registry, c.Lease)
	if err != nil {
		return err
	}
	breaks = &fragile{Store: store, at: c.CrashAt, on: c.CrashOn, by: c.CrashBy}
	host, _ := os.Hostname()
	w, err := jobs.NewWorker(jobs.Config{Source: breaks, Workers: breaks, Registry: registry, Logger: log,
		Now: time.Now,
		Info: jobs.WorkerInfo{ID: fmt.Sprintf("%s:%d:%s", host, os.Getpid(), uuid.NewString()[:8]), Host: host,
			PID: os.Getpid()},
		Queues: c.Queues, Slots: c.Slots, Prefetch: 2 * c.Slots, Lease: c.Lease, Grace: c.Grace,
		PollMin: 20 * time.Millisecond, PollMax: 300 * time.Millisecond, DatabaseTrouble: database.Outage})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return w.Run(ctx)
}

// openStore connects, waiting for a server that is just being killed by a test.
func openStore(ctx context.Context, dsn string, registry *jobs.Registry, lease time.Duration) (*queue.Store, error) {
	var last error
	for range 200 {
		db, err := database.Connect(ctx, database.ConnectOptions{DSN: dsn})
		if err == nil {
			store, err := queue.Open(ctx, db, tables.Options{Registry: registry, DefaultQueue: "default",
				RetryAfter: lease})
			if err == nil {
				return store, nil
			}
			last = err
			db.Close()
		} else {
			last = err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, last
}

func (c childConfig) effect(ctx context.Context, j jobs.Job, e effect) error {
	if err := c.tell(j, e.Key, "start"); err != nil {
		return err
	}
	if e.Length > 0 {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), c.tell(j, e.Key, "cancelled"))
		case <-time.After(e.Length):
		}
	}
	if ctx.Err() != nil { // after a pause the lease may be another's: no further effect
		return errors.Join(ctx.Err(), c.tell(j, e.Key, "cancelled"))
	}
	if j.Attempt <= e.Fail {
		return errors.Join(errors.New("asked to fail"), c.tell(j, e.Key, "failed"))
	}
	return c.tell(j, e.Key, "end")
}

// tell writes one line to the sink, which is outside of all that is killed. It
// says when: a process that is stopped while it tells is heard when it wakes.
func (c childConfig) tell(j jobs.Job, key int, what string) error {
	body := fmt.Sprintf("%d %s %d %d %d", key, what, j.Attempt, os.Getpid(), time.Now().UnixNano())
	client := http.Client{Timeout: 5 * time.Second} // a host that is cut off must not wait for ever
	resp, err := client.Post(c.Sink, "text/plain", strings.NewReader(body))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// event is what a child told the sink.
type event struct {
	key, attempt, pid int
	what              string
	at                time.Time
}

// sink is the observer: it keeps what children tell, in the order of arrival. A
// start has the time at at which it was sent, everything else that of its arrival.
type sink struct {
	mu     sync.Mutex
	events []event
	ends   map[int]int
	grew   chan struct{}
}

func newSink() *sink { return &sink{ends: map[int]int{}, grew: make(chan struct{}, 1)} }

func (s *sink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 200))
	fields := strings.Fields(string(body))
	if err != nil || len(fields) != 5 {
		return
	}
	key, _ := strconv.Atoi(fields[0])
	attempt, _ := strconv.Atoi(fields[2])
	pid, _ := strconv.Atoi(fields[3])
	at := time.Now()
	if told, _ := strconv.ParseInt(fields[4], 10, 64); fields[1] == "start" {
		at = time.Unix(0, told)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event{key, attempt, pid, fields[1], at})
	if fields[1] == "end" {
		s.ends[key]++
	}
	select {
	case s.grew <- struct{}{}:
	default:
	}
}

// await waits until so many different jobs have ended.
func (s *sink) await(t *testing.T, jobs int, within time.Duration) {
	t.Helper()
	deadline := time.After(within)
	for {
		s.mu.Lock()
		n := len(s.ends)
		s.mu.Unlock()
		if n >= jobs {
			return
		}
		select {
		case <-s.grew:
		case <-deadline:
			t.Fatalf("only %d of %d jobs ended within %v", n, jobs, within)
		}
	}
}

// process is a worker process under test.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

func startChild(t *testing.T, c childConfig) *process {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	cmd.Stderr = &prefixed{t: t}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := jobstest.InNamespace(c.Space, cmd.Start); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		ready <- lines.Scan()
		for lines.Scan() {
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	<-ready
	t.Cleanup(func() { p.signal(syscall.SIGKILL); <-p.done })
	return p
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // one that has ended needs none

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// prefixed shows a child's log in the test's log. A child that is killed has no exit
// status to speak of: what the race detector prints is the only word of a race.
type prefixed struct {
	t  *testing.T
	mu sync.Mutex
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Contains(b, []byte("WARNING: DATA RACE")) {
		p.t.Error("a data race in a worker's process")
	}
	if testing.Verbose() || p.t.Failed() {
		fmt.Fprintf(os.Stderr, "    child: %s", b)
	}
	return len(b), nil
}
