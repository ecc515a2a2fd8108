package media

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/migrations"
)

var letter = jobs.Kind[struct{ N int }]{Name: "mail.send"}

// newQueue is a site whose pictures come through a queue and a worker.
func newQueue(t *testing.T) (*site, *queue.Store, *jobs.Registry) {
	t.Helper()
	raw := jobstest.Open(t, jobstest.SQLite)
	db, err := database.Connect(t.Context(), database.ConnectOptions{DSN: raw.DSN, MaxConnections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, statement := range strings.Split(strings.ReplaceAll(schema, "%key%", `"key"`), ";\n") {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrations.Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTables(t.Context(), db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	s := withHandler(t, &cms.Site{DB: db, Root: t.TempDir(), Env: cms.Env{}}, Options{AtOnce: 2})
	registry := jobs.NewRegistry()
	s.handler.Register(registry)
	store, err := queue.Open(t.Context(), db, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	return s, store, registry
}

// Many uploads at once, then mail, in one worker of eight slots: not one picture
// gets done before all mail is out, as the first picture waits for it. (Without
// the kind's limit pictures take all slots, and mail never comes.) Memory stays
// that of the few that are decoded. CMSJOBS_SOAK=1 uploads a thousand.
func TestMailPassesManyUploads(t *testing.T) {
	uploads, letters := 60, int64(20)
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		uploads = 1000
	}
	s, store, registry := newQueue(t)
	var sent atomic.Int64
	allSent := make(chan struct{})
	jobs.Handle(registry, letter, func(context.Context, jobs.Job, struct{ N int }) error {
		if sent.Add(1) == letters {
			close(allSent)
		}
		return nil
	})
	open := s.handler.Open
	s.handler.Open = func(ctx context.Context, p cms.MediaPlace) (storage.Store, error) {
		select {
		case <-allSent:
			return open(ctx, p)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	data := jpegOf(t, 2000, 1500)
	var waiting []jobs.Spec
	for id := range uploads {
		url := fmt.Sprintf("%d.jpg", id+1)
		s.upload(id+1, url, "image/jpeg", data)
		waiting = append(waiting,
			ProcessImage.New(ProcessImagePayload{MediaFileID: ID(fmt.Sprint(id + 1)), FilePath: url}))
	}
	for n := range letters {
		waiting = append(waiting, letter.New(struct{ N int }{int(n)}))
	}
	if _, err := store.Enqueue(t.Context(), waiting...); err != nil {
		t.Fatal(err)
	}
	few := peakOf(func() { s.renderHere(data, data) })
	many := peakOf(func() { s.work(store, registry) })
	var processed int
	if err := s.DB.Get(&processed, "SELECT COUNT(*) FROM media_files WHERE options LIKE '%processed_at%'"); err != nil {
		t.Fatal(err)
	}
	if processed != uploads || sent.Load() != letters || s.size("1-large.jpg") != "(800,600)" {
		t.Errorf("%d of %d pictures, %d of %d letters", processed, uploads, sent.Load(), letters)
	}
	if t.Logf("peak of 2: %d MiB, of %d: %d MiB", few>>20, uploads, many>>20); many > 3*few+32<<20 {
		t.Errorf("%d uploads took %d MiB, two pictures %d", uploads, many>>20, few>>20)
	}
}

// renderHere renders pictures at once, without a queue.
func (s *site) renderHere(pictures ...[]byte) {
	s.t.Helper()
	done := make(chan error)
	for _, data := range pictures {
		go func() {
			w := work{plan: plan{sizes: plainSizes()}, data: data}
			var err error
			if w.header, err = picture.Inspect(data); err == nil {
				_, err = w.render(s.t.Context(), s.handler.Options, w.plan.renditions("a.jpg", 0, nil))
			}
			done <- err
		}()
	}
	for range pictures {
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	}
}

// work runs a worker until the queue is empty.
func (s *site) work(store *queue.Store, registry *jobs.Registry) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: time.Now, Queues: []string{
		"cmsjobs", "default"}, Slots: 8,
		Lease: 90 * time.Second, PollMin: 5 * time.Millisecond, PollMax: 50 * time.Millisecond, StopWhenEmpty: true})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := w.Run(ctx); err != nil || ctx.Err() != nil {
		s.t.Errorf("the worker: %v, %v", err, ctx.Err())
	}
}
