package mail

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/templates"
)

// These tests run mail workers as separate processes, because only a
// process can be killed. A worker is this test binary, told by its environment.

const workerEnv = "CMSJOBS_MAIL_TEST_WORKER"

// workerOrder says what a worker process is to do: to work off the rows of
// the table todo whose number modulo Of is Share.
type workerOrder struct {
	Driver, DSN   string
	Port          int
	Roots         string
	PerSecond     int
	ResendUnknown bool
	Share, Of     int
	Slots         int
}

func TestMain(m *testing.M) {
	if order := os.Getenv(workerEnv); order != "" {
		if err := work(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mostAttempts ends a job that never settles, as a queue does.
const mostAttempts = 200

// work is a plain queue: it runs each open row until it is done or failed.
func work(text string) error {
	var o workerOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	db, err := sqlx.Open(o.Driver, o.DSN)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(o.Roots))
	h, err := New(Config{Site: &cms.Site{DB: db}, DB: db, Templates: templates.Mail(), Now: time.Now,
		Logger: slog.New(slog.DiscardHandler),
		TLS:    &tls.Config{RootCAs: roots}, Limits: Limits{All: Rate{PerSecond: o.PerSecond}},
		ResendUnknown: o.ResendUnknown, InlineWait: time.Minute,
		Transport: Transport{Driver: DriverSMTP, Host: "127.0.0.1", Port: o.Port, FromAddress: "noreply@example.com",
			TLS: TLSStart, Username: user, Password: password}})
	if err != nil {
		return err
	}
	var open []struct{ ID, Attempt int }
	if err := db.Select(&open,
		db.Rebind("SELECT id, attempt FROM todo WHERE status = 'open' AND id % ? = ? ORDER BY id"), o.Of,
		o.Share); err != nil {
		return err
	}
	rows := make(chan struct{ ID, Attempt int })
	var group sync.WaitGroup
	for range o.Slots {
		group.Go(func() {
			for row := range rows {
				for attempt := row.Attempt + 1; ; attempt++ {
					db.MustExec(db.Rebind("UPDATE todo SET attempt = ? WHERE id = ?"), attempt, row.ID)
					data := fmt.Sprintf(`{"to":"r%d@example.net","subject":"%d","body":"b"}`, row.ID, row.ID)
					var p SendPayload
					if err := json.Unmarshal([]byte(data), &p); err != nil {
						panic(err)
					}
					err := h.send(context.Background(), jobs.Job{UUID: fmt.Sprintf("job-%d", row.ID), Attempt: attempt,
						Data: json.RawMessage(data)}, p)
					if err == nil || jobs.IsPermanent(err) || attempt >= mostAttempts {
						state := "done"
						switch {
						case jobs.IsPermanent(err):
							state = "failed"
						case err != nil:
							state = "endless"
						}
						db.MustExec(db.Rebind("UPDATE todo SET status = ? WHERE id = ?"), state, row.ID)
						break
					}
				}
			}
		})
	}
	for _, row := range open {
		rows <- row
	}
	close(rows)
	group.Wait()
	h.Close()
	fmt.Println("all done")
	return nil
}

// fleet is the table of mails and the processes that work on it.
type fleet struct {
	t     *testing.T
	db    *jobstest.Database
	order workerOrder
}

func newFleet(t *testing.T, s *sink, engine jobstest.Engine, mails int) *fleet {
	db := jobstest.Migrated(t, engine)
	db.MustExec("CREATE TABLE todo (id INT PRIMARY KEY, status VARCHAR(10) NOT NULL, attempt INT NOT NULL)")
	for i := range mails {
		db.MustExec(db.Rebind("INSERT INTO todo VALUES (?, 'open', 0)"), i)
	}
	leaf := s.server.TLS.Certificates[0].Leaf
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	return &fleet{t, db, workerOrder{Driver: db.Driver, DSN: db.DSN, Port: s.port, Roots: string(roots), Of: 1,
		Slots: 4}}
}

func (f *fleet) start(o workerOrder) *exec.Cmd {
	f.t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

func (f *fleet) count(state string) (n int) {
	f.t.Helper()
	if err := f.db.Get(&n, f.db.Rebind("SELECT COUNT(*) FROM todo WHERE status = ?"), state); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// subjects counts the mails that the server took, by subject.
func subjects(got []received) (count map[string]int, ids map[string][]string) {
	count, ids = map[string]int{}, map[string][]string{}
	for _, g := range got {
		subject, id := "", ""
		lines := bufio.NewScanner(strings.NewReader(body(g)))
		for lines.Scan() && lines.Text() != "" {
			if v, ok := strings.CutPrefix(lines.Text(), "Subject: "); ok {
				subject = v
			}
			if v, ok := strings.CutPrefix(lines.Text(), "Message-ID: "); ok {
				id = v
			}
		}
		count[subject]++
		ids[subject] = append(ids[subject], id)
	}
	return count, ids
}

// Workers are killed (SIGKILL) while the server holds a whole mail whose
// answer nobody has seen, and at other moments. F14 of the failures that the
// service promises to stand.
func TestKilledWorkers(t *testing.T) {
	mails, every := 100, 16
	if os.Getenv("CMSJOBS_SOAK") != "" {
		mails, every = 1000, 20
	}
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("resend_unknown=%v", again), func(t *testing.T) {
			s := newSink(t, nil)
			f := newFleet(t, s, jobstest.SQLite, mails)
			f.order.ResendUnknown = again
			kill := make(chan chan struct{}, 1)
			var mu sync.Mutex
			seen, kills := 0, 0
			hook := func(point int) {
				mu.Lock()
				seen++
				now := seen%every == point
				mu.Unlock()
				if now {
					dead := make(chan struct{})
					select {
					case kill <- dead:
						<-dead // the answer comes when nobody is there to hear it
					default:
					}
				}
			}
			s.on(func(string) error { hook(1); return nil }, func(received) error { hook(0); return nil })
			for f.count("open") > 0 && kills < mails {
				worker := f.start(f.order)
				ended := make(chan struct{})
				go func() { worker.Wait(); close(ended) }()
				select {
				case dead := <-kill:
					worker.Process.Kill()
					<-ended
					kills++
					close(dead)
				case <-ended:
				}
			}
			select { // one that came too late to be killed
			case dead := <-kill:
				close(dead)
			default:
			}
			// What the server had taken when its worker died is stored a moment later.
			s.server.Close()
			count, ids := subjects(s.all())
			duplicates := 0
			for subject, n := range count {
				duplicates += n - 1
				for _, id := range ids[subject] {
					if id != ids[subject][0] {
						t.Errorf("mail %s has the Message-IDs %q", subject, ids[subject])
					}
				}
			}
			if kills < 5 {
				t.Fatalf("only %d kills", kills)
			}
			if n := f.count("endless"); n > 0 {
				t.Errorf("%d jobs were never settled", n)
			}
			failed := f.count("failed")
			t.Logf("%d mails, %d kills: %d arrived, %d twice, %d jobs failed visibly", mails, kills, len(count),
				duplicates, failed)
			if !again && duplicates != 0 {
				t.Errorf("%d duplicates", duplicates)
			}
			if again && (duplicates > kills*f.order.Slots || failed != 0 || len(count) != mails) {
				t.Errorf("%d duplicates after %d kills of %d slots, %d failed, %d of %d arrived", duplicates, kills,
					f.order.Slots, failed, len(count), mails)
			}
			for i := range mails {
				var state string
				if err := f.db.Get(&state, "SELECT status FROM todo WHERE id = ?", i); err != nil {
					t.Fatal(err)
				}
				if count[fmt.Sprint(i)] == 0 && state != "failed" {
					t.Errorf("mail %d is lost, and its job is %s", i, state)
				}
			}
		})
	}
}

// 1,000 jobs, 4 processes, 100 a second. Arrivals can only be later than what
// the limit let through, so up to each moment at most so many have arrived.
func TestAThousandJobsStayWithinTheLimit(t *testing.T) {
	const mails, perSecond = 1000, 100
	s := newSink(t, nil)
	f := newFleet(t, s, jobstest.MariaDB, mails)
	f.order.PerSecond, f.order.Of = perSecond, 4
	started := time.Now()
	var workers []*exec.Cmd
	for share := range 4 {
		o := f.order
		o.Share = share
		workers = append(workers, f.start(o))
	}
	for _, w := range workers {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
	got := s.all()
	if len(got) != mails || f.count("done") != mails {
		t.Fatalf("%d mails, %d done", len(got), f.count("done"))
	}
	for i, g := range got {
		windows := int(g.at.Sub(started)/time.Second) + 1
		if i+1 > perSecond*windows {
			t.Fatalf("%d mails within %s", i+1, g.at.Sub(started))
		}
	}
	t.Logf("%d mails in %s", mails, time.Since(started).Round(10*time.Millisecond))
}
