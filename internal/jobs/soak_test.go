package jobs_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// F17: the queue under mixed work for as long as CMSJOBS_SOAK_TIME says (make
// soak: an hour), while workers and the server are killed, the network is cut,
// slow or a black hole, and, for root, the database's disk is full. A judge
// reads what the sink saw; the accounts must balance at every look; the memory
// and files of a worker that lives through it all must stay flat.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("CMSJOBS_SOAK_TIME"))
	if err != nil {
		t.Skip("CMSJOBS_SOAK_TIME=1h runs this (make soak)")
	}
	s := newSoak(t)
	s.run(length)
	s.finish()
	s.judge()
}

// soakRate is how many jobs a second come in.
const soakRate = 200

// soakTest is one soak: a lab, what was asked for, and what was measured.
type soakTest struct {
	*lab
	proxy   *jobstest.Proxy
	disk    string // the full disk's mount point, "" where there is none
	workers []*process
	veteran *process // is never killed

	asked    map[int]soakJob // by key
	tried    int             // rows that an enqueue may have made
	acked    int             // rows whose enqueue was acknowledged
	samples  []sample
	balanced int            // looks at the accounts that the server answered
	counts   map[string]int // faults by name, written while harm is done, read after it
}

// soakJob is what became of asking for a job.
type soakJob struct {
	due   time.Time
	acked bool
	dies  bool // it fails at every attempt
}

type sample struct {
	rssKiB, files int
}

func newSoak(t *testing.T) *soakTest {
	s := &soakTest{asked: map[int]soakJob{}, counts: map[string]int{}}
	s.disk = smallDisk(t)
	s.lab = newLab(t)
	t.Setenv("TMPDIR", "")
	s.proxy = jobstest.NewProxy(t, s.server.Port)
	near, far := s.config, s.config
	far.DSN = jobstest.MariaDBDSN(s.proxy.Port, "lab")
	s.veteran = startChild(t, near)
	s.workers = []*process{startChild(t, near), startChild(t, near), startChild(t, far)}
	return s
}

// smallDisk mounts a small disk and lets the lab's server lie on it; "" where
// this is not allowed.
func smallDisk(t *testing.T) string {
	dir, err := os.MkdirTemp("", "cmsjobs-disk-")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1500m,mode=0777"); err != nil {
		t.Logf("no full disk in this soak, as mounting needs root: %v", err)
		os.Remove(dir)
		return ""
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Logf("%s stays mounted: %v", dir, err)
		}
		os.Remove(dir)
	})
	t.Setenv("TMPDIR", dir)
	return dir
}

// run asks for jobs steadily, does harm every ten seconds and looks every five.
func (s *soakTest) run(length time.Duration) {
	end := time.Now().Add(length)
	enqueue, look := time.NewTicker(100*time.Millisecond), time.NewTicker(5*time.Second)
	defer enqueue.Stop()
	defer look.Stop()
	harm, harmed := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(harmed)
		for round := 0; ; round++ {
			if _, more := <-harm; !more {
				return
			}
			s.harm(round)
		}
	}()
	next := time.Now().Add(8 * time.Second)
	for now := range enqueue.C {
		if now.After(end) {
			break
		}
		s.ask(soakRate / 10)
		select {
		case <-look.C:
			s.look()
		default:
		}
		if now.After(next) {
			next = now.Add(10 * time.Second)
			select {
			case harm <- struct{}{}:
			default: // the last fault still lasts
			}
		}
	}
	close(harm)
	<-harmed
}

// ask enqueues n jobs of mixed shape. An error means that nobody knows: the
// keys may run, or not.
func (s *soakTest) ask(n int) {
	batch, from := []jobs.New{}, len(s.asked)
	for i := range n {
		key := from + i
		e := effect{Key: key}
		job := soakJob{due: time.Now()}
		wait := time.Duration(0)
		limit := 20
		switch roll := rand.IntN(1000); {
		case roll < 1:
			e.Length = 2 * s.config.Lease // longer than its lease
		case roll < 11:
			e.Fail = 1
		case roll < 13:
			e.Fail, limit, job.dies = 1000, 2, true
		case roll < 60:
			wait = 3 * time.Second
		default:
			e.Length = time.Duration(rand.IntN(5)) * time.Millisecond
		}
		batch = append(batch, effectKind.Of(e).On("default").WithMaxAttempts(limit).In(wait))
		job.due = job.due.Add(wait)
		s.asked[key] = job
	}
	s.tried += n
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := s.store.Enqueue(ctx, batch...); err != nil {
		return
	}
	s.acked += n
	for key := from; key < from+n; key++ {
		job := s.asked[key]
		job.acked = true
		s.asked[key] = job
	}
}

// harm does one fault after the other.
func (s *soakTest) harm(round int) {
	switch round % 6 {
	case 0, 3:
		i := rand.IntN(len(s.workers))
		s.count("worker killed", s.workers[i].cmd.Process.Pid, 0)
		s.workers[i].kill()
		c := s.config
		if i == len(s.workers)-1 {
			c.DSN = jobstest.MariaDBDSN(s.proxy.Port, "lab")
		}
		s.workers[i] = startChild(s.t, c)
	case 1:
		s.count("network cut", s.far(), 4*time.Second)
		s.proxy.Cut()
	case 2:
		s.count("server killed", 0, 5*time.Second)
		if err := s.server.Kill(); err != nil {
			s.t.Logf("killing the server: %v", err)
		}
		if err := s.server.Start(); err != nil {
			s.t.Errorf("the server does not come back: %v", err)
		}
	case 4:
		s.count("network slow, then a black hole", s.far(), 16*time.Second)
		s.proxy.Slow(20 * time.Millisecond)
		time.Sleep(3 * time.Second)
		s.proxy.Slow(0)
		s.proxy.Swallow(true)
		time.Sleep(3 * time.Second)
		s.proxy.Swallow(false)
		s.proxy.Cut()
	case 5:
		s.fillDisk()
	}
}

func (s *soakTest) far() int { return s.workers[len(s.workers)-1].cmd.Process.Pid }

func (s *soakTest) count(name string, pid int, length time.Duration) {
	s.counts[name]++
	s.fault(pid, length)
}

// fillDisk leaves the database without a free byte for two seconds. A server
// that dies of it is started again, as its supervisor would.
func (s *soakTest) fillDisk() {
	if s.disk == "" {
		return
	}
	s.count("disk full", 0, 10*time.Second)
	ballast := filepath.Join(s.disk, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		s.t.Errorf("filling the disk: %v", err)
		return
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(block) // until there is no space
	}
	f.Close()
	time.Sleep(2 * time.Second)
	if err := os.Remove(ballast); err != nil {
		s.t.Errorf("freeing the disk: %v", err)
	}
	time.Sleep(time.Second)
	if err := s.db.Ping(); err == nil {
		return
	}
	s.t.Log("the server died of its full disk; started again")
	if err := s.server.Kill(); err != nil {
		s.t.Logf("the server was gone: %v", err)
	}
	if err := s.server.Start(); err != nil {
		s.t.Errorf("the server does not come back after a full disk: %v", err)
	}
}

// look holds the accounts against each other and measures the veteran.
func (s *soakTest) look() {
	acked, tried := s.acked, s.tried
	rows, err := s.rows()
	if err == nil && (rows < acked || rows > tried) {
		s.t.Errorf("accounts do not balance (P13): %d rows wait, run, failed or are done; %d were acknowledged, %d tried", rows, acked, tried)
	}
	if err == nil {
		s.balanced++
	}
	m, err := measure(s.veteran.cmd.Process.Pid)
	if err != nil {
		s.t.Errorf("the veteran cannot be measured: %v", err)
		return
	}
	s.samples = append(s.samples, m)
}

// rows counts, in one snapshot, where the rows are that were ever enqueued.
func (s *soakTest) rows() (total int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	tx, err := s.db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	for _, query := range []string{"SELECT COUNT(*) FROM jobs", "SELECT COUNT(*) FROM failed_jobs",
		"SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed'"} {
		var n int
		if err := tx.GetContext(ctx, &n, query); err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func measure(pid int) (sample, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return sample{}, err
	}
	m := sample{}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			m.rssKiB, err = strconv.Atoi(f[1])
		}
	}
	open, ferr := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	m.files = len(open)
	if err == nil {
		err = ferr
	}
	return m, err
}

// finish waits until nothing waits or runs any more.
func (s *soakTest) finish() {
	deadline := time.Now().Add(3 * time.Minute)
	for time.Now().Before(deadline) {
		var left int
		if err := s.db.Get(&left, "SELECT COUNT(*) FROM jobs"); err == nil && left == 0 {
			s.look()
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.t.Error("the queue is not empty three minutes after the last job was asked for")
}

// judge says what was lost, ran twice or came late, and whether memory grew.
func (s *soakTest) judge() {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	starts := map[int][]event{}
	twice, waits := 0, []time.Duration{}
	for _, e := range s.sink.events {
		switch e.what {
		case "start":
			if before := starts[e.key]; len(before) > 0 {
				twice++
				if !s.explained(before[len(before)-1], e) {
					s.t.Errorf("job %d ran again without a fault: %+v then %+v", e.key, before[len(before)-1], e)
				}
			} else if e.attempt == 1 {
				waits = append(waits, e.at.Sub(s.asked[e.key].due))
			}
			starts[e.key] = append(starts[e.key], e)
		case "failed":
			delete(starts, e.key) // the next start is an ordinary retry
		}
	}
	lost, dead := 0, 0
	for key, job := range s.asked {
		if job.dies && job.acked {
			dead++
		} else if job.acked && s.sink.ends[key] == 0 {
			lost++
		}
	}
	var failed int
	if err := s.db.Get(&failed, "SELECT COUNT(*) FROM failed_jobs"); err != nil {
		s.t.Fatal(err)
	}
	if lost > 0 || failed < dead {
		s.t.Errorf("%d acknowledged jobs never ended; %d in failed_jobs where at least %d belong", lost, failed, dead)
	}
	slices.Sort(waits)
	at := func(share float64) time.Duration {
		return waits[int(float64(len(waits)-1)*share)].Round(time.Millisecond)
	}
	s.t.Logf("%d jobs acknowledged, %d unknown; %d lost, %d ran twice (each explained), %d buried as asked", s.acked, s.tried-s.acked, lost, twice, failed)
	s.t.Logf("start after falling due: median %v, 99 %% %v, longest %v; %d looks at the accounts; faults: %v", at(0.5), at(0.99), at(1), s.balanced, s.counts)
	s.flat()
}

// flat holds the last quarter of the samples against the second.
func (s *soakTest) flat() {
	n := len(s.samples)
	if n < 16 {
		s.t.Logf("%d samples are too few to say whether memory grows", n)
		return
	}
	worst := func(of []sample) (m sample) {
		for _, x := range of {
			m.rssKiB, m.files = max(m.rssKiB, x.rssKiB), max(m.files, x.files)
		}
		return m
	}
	then, now := worst(s.samples[n/4:n/2]), worst(s.samples[3*n/4:])
	s.t.Logf("the veteran: %d KiB and %d files in the second quarter, %d KiB and %d files in the last", then.rssKiB, then.files, now.rssKiB, now.files)
	if now.rssKiB > then.rssKiB*11/10+4096 || now.files > then.files+8 {
		s.t.Errorf("memory or files grow: %+v, then %+v", then, now)
	}
}
