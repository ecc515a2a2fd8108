package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/worker"
)

// content is what the examples need of a CMS, in SQL that all databases take.
var content = []string{
	`CREATE TABLE settings (id BIGINT PRIMARY KEY, "key" VARCHAR(191) NOT NULL, value TEXT)`,
	`CREATE TABLE slugs (id BIGINT PRIMARY KEY, "key" VARCHAR(191), reference_id BIGINT, reference_type VARCHAR(191),
		prefix VARCHAR(191), updated_at TIMESTAMP NULL)`,
	`CREATE TABLE pages (id BIGINT PRIMARY KEY, name VARCHAR(191), content TEXT, status VARCHAR(60), image TEXT,
		created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
	`CREATE TABLE posts (id BIGINT PRIMARY KEY, name VARCHAR(191), content TEXT, status VARCHAR(60), image TEXT,
		created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
	`CREATE TABLE categories (id BIGINT PRIMARY KEY, name VARCHAR(191), status VARCHAR(60), created_at TIMESTAMP NULL,
		updated_at TIMESTAMP NULL)`,
	`CREATE TABLE media_files (id BIGINT PRIMARY KEY, user_id BIGINT, name VARCHAR(191), alt TEXT, folder_id BIGINT,
		mime_type VARCHAR(120), size BIGINT, url VARCHAR(191), options TEXT, visibility VARCHAR(20),
		created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL, deleted_at TIMESTAMP NULL)`,
	`INSERT INTO posts (id, name, content, status) VALUES (1, 'a', 'b', 'draft')`,
	`INSERT INTO media_files (id, user_id, name, folder_id, mime_type, size, url, options, visibility)
		VALUES (123, 1, 'image', 0, 'image/jpeg', 1, 'media/2024/01/image.jpg', '[]', 'public')`,
}

// specified is a running service beside a small CMS, with a program that brings the
// types of the examples.
type specified struct {
	*service
	db     *jobstest.Database
	layout tables.Layout
	admin  string
}

func startSpecified(t *testing.T, engine jobstest.Engine, layout tables.Layout) *specified {
	t.Helper()
	db := jobstest.Open(t, engine)
	if _, err := tables.CreateTables(t.Context(), db.DB, layout, ""); err != nil {
		t.Fatal(err)
	}
	for _, statement := range content {
		if engine.IsMySQL() {
			statement = strings.ReplaceAll(statement, `"`, "`")
		}
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	dsn, site := db.DSN, siteFolder(t)
	if engine == jobstest.SQLite {
		path := jobstest.SQLiteFile(dsn)
		dsn = "sqlite:" + path
	}
	x := &specified{db: db, layout: layout, service: startService(t, fmt.Sprintf(`queue: {poll_first: 20ms, poll: 100ms}
schedule: {enabled: false}
notify: {mail: false}
cms: {dir: %q, url: 'https://example.com'}
mail: {driver: files, dir: %q, from: site@example.com}
backup: {dir: %q, min_interval: 0s}
`, site, t.TempDir(), t.TempDir()), "--dsn="+dsn)}
	x.admin = x.token("admin")
	x.runPrograms(t)
	return x
}

// siteFolder is a CMS's folder with the picture of the example.
func siteFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	picture := filepath.Join(dir, "public", "storage", "media", "2024", "01", "image.jpg")
	if err := os.MkdirAll(filepath.Dir(picture), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(picture)
	if err == nil {
		err = errors.Join(jpeg.Encode(f, image.NewRGBA(image.Rect(0, 0, 1000, 800)), nil), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// runPrograms is a program that runs the examples' types that are not the service's,
// and waits until the service knows them.
func (x *specified) runPrograms(t *testing.T) {
	t.Helper()
	w, err := worker.New(t.Context(), x.db.DB.DB, x.db.Driver, worker.Options{Queue: "default"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		worker.Register(w, name, func(context.Context, map[string]any) error { return nil })
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	known := func() bool {
		status, _ := x.try("POST", "/api/v1/jobs", `{"type":"reports.generate","run_at":"2036-01-01T00:00:00Z"}`,
			bearer(x.admin))
		return status == 201
	}
	for end := time.Now().Add(time.Minute); !known(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the service does not know the program's types\n%s", x.log())
		}
	}
}

// TestTheExamplesOfTheSpecificationsByEveryWay enqueues each example by SQL on every
// database and layout, and by HTTP, Go and JavaScript: it is accepted, done, and
// answered with every field that the specifications show.
func TestTheExamplesOfTheSpecificationsByEveryWay(t *testing.T) {
	t.Parallel()
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			x := startSpecified(t, engine, tables.Stock)
			x.enqueued(t, "SQL", x.bySQL)
			if engine != jobstest.MySQL {
				return
			}
			x.enqueued(t, "HTTP", x.byHTTP)
			x.enqueued(t, "Go", x.byGo)
			x.enqueued(t, "JavaScript", x.byJavaScript)
		})
		if engine.IsMySQL() {
			t.Run(string(engine)+", extended", func(t *testing.T) {
				t.Parallel()
				x := startSpecified(t, engine, tables.Extended)
				x.enqueued(t, "SQL", x.bySQL)
			})
		}
	}
}

// enqueued enqueues all examples by a way, which returns their jobs' ids or numbers in
// order, and looks at each job.
func (x *specified) enqueued(t *testing.T, name string, way func(*testing.T, []asked) []string) {
	t.Run(name, func(t *testing.T) {
		defer func(all *testing.T) { x.t = all }(x.t)
		x.t = t
		all := make([]asked, len(examples))
		for i, e := range examples {
			all[i] = e.read(t, time.Now())
		}
		ids := way(t, all)
		if len(ids) != len(examples) {
			t.Fatalf("%d of %d examples were enqueued: %v", len(ids), len(examples), ids)
		}
		for i, e := range examples {
			t.Run(e.name, func(t *testing.T) { x.isAnswered(t, e, all[i], ids[i]) })
		}
	})
}

// isAnswered looks at the job of an example in the words of S1 and S2.
func (x *specified) isAnswered(t *testing.T, e example, a asked, id string) {
	x.t = t
	status := "pending"
	if e.later == 0 {
		if job := x.awaitEnd(id, bearer(x.admin)); job.Status != "completed" {
			t.Fatalf("it ended as %+v", job)
		}
		status = "completed"
	}
	var job map[string]any
	x.ask(200, "GET", "/api/jobs/"+id, "", bearer(x.admin), &job)
	for _, field := range []string{"id", "topic", "payload", "status", "run_at", "retries", "max_retries", "created",
		"updated"} {
		if _, there := job[field]; !there {
			t.Errorf("S1's job has no %s: %v", field, job)
		}
	}
	if job["status"] != status || job["retries"] != 0.0 {
		t.Errorf("it is %v after %v retries: %v", job["status"], job["retries"], job)
	}
	if !e.edited && !reflect.DeepEqual(job["payload"], any(a.plain(t))) {
		t.Errorf("its payload is %v, want %v", job["payload"], a.plain(t))
	}
	due, err := time.Parse(time.RFC3339, fmt.Sprint(job["run_at"]))
	if a.RunAt != nil && !due.Truncate(time.Second).Equal(*a.RunAt) {
		t.Errorf("it is due at %v, want %v: %v", job["run_at"], a.RunAt, err)
	}
	if a.Queue != "" && job["queue"] != a.Queue {
		t.Errorf("it is in the queue %v, want %s", job["queue"], a.Queue)
	}
	var want map[string]any
	if json.Unmarshal(a.Metadata, &want) == nil && !reflect.DeepEqual(job["metadata"], any(want)) {
		t.Errorf("its metadata is %v, want %v", job["metadata"], want)
	}
	x.isListed(t, fmt.Sprint(job["id"]), fmt.Sprint(job["topic"]), e.later > 0)
}

// isListed looks for the job in S2's list, with the fields of S2's model.
func (x *specified) isListed(t *testing.T, id, jobType string, waits bool) {
	t.Helper()
	status, fields := "succeeded", []string{"succeededAt"}
	if waits {
		status, fields = "queued", nil
	}
	var list struct{ Items []map[string]any }
	x.ask(200, "GET", "/api/admin/jobs?status="+status+"&type="+jobType, "", bearer(x.admin), &list)
	for _, job := range list.Items {
		if job["id"] != id {
			continue
		}
		for _, field := range append(fields, "type", "payload", "status", "attempts", "maxAttempts", "runAt",
			"createdAt", "updatedAt") {
			if _, there := job[field]; !there {
				t.Errorf("S2's job has no %s: %v", field, job)
			}
		}
		if job["status"] != status {
			t.Errorf("S2 says that it is %v", job["status"])
		}
		return
	}
	t.Errorf("S2's list of %s %s has no %s: %v", status, jobType, id, list.Items)
}
