package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/migrations"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// newsroom is a CMS with a queue beside it and its own clock.
type newsroom struct {
	t       testing.TB
	db      *sqlx.DB
	site    *cms.Site
	store   *queue.Store
	past    *history.Store
	handler *Handler
	now     time.Time
	watcher *Watcher
	shown   string        // the content that readers were shown last
	told    []Publication // what the effects were asked for
}

type cancelling struct {
	*queue.Store
	past *history.Store
}

func (q cancelling) CancelJob(ctx context.Context, uuid string) error {
	_, err := q.past.Cancel(ctx, jobs.Filter{UUIDs: []string{uuid}}, 1)
	return err
}

var sitemap = jobs.Kind[struct{}]{Name: "sitemap.generate"}

func newNewsroom(t testing.TB, engine jobstest.Engine, dump string, models ...Model) *newsroom {
	t.Helper()
	n := &newsroom{t: t, now: noon}
	raw := jobstest.Open(t, engine)
	db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: raw.DSN, MaxConnections: 5})
	n.must(err)
	t.Cleanup(func() { db.Close() })
	n.db = db
	if dump != "" {
		n.load(dump)
	} else {
		n.sql("CREATE TABLE posts (id INTEGER PRIMARY KEY, name VARCHAR(100), status VARCHAR(60), publish_at " +
			"TIMESTAMP NULL, created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL)")
		n.sql("CREATE TABLE slugs (id INTEGER PRIMARY KEY, " + database.Of(db).Ident("key") + " VARCHAR(100), " +
			"reference_id INTEGER, reference_type VARCHAR(100), prefix VARCHAR(60))")
	}
	n.must(migrations.Up(context.Background(), db))
	_, err = tables.CreateTables(context.Background(), db, tables.Stock, "")
	n.must(err)
	n.site = &cms.Site{DB: db, Env: cms.Env{"APP_URL": "https://news.example"}}
	n.handler = n.another("first", models)
	registry := jobs.NewRegistry()
	n.handler.Register(registry)
	jobs.Handle(registry, sitemap, func(context.Context, jobs.Job, struct{}) error { return nil })
	found, err := tables.Open(context.Background(), db, tables.Options{
		Registry: registry, DatabaseClock: func() time.Time { return n.now }, Clock: func() time.Time { return n.now }})
	n.must(err)
	n.store, err = queue.New(context.Background(), found)
	n.must(err)
	n.past = history.New(found)
	n.handler.c.Queue = cancelling{n.store, n.past}
	n.watcher = n.handler.NewWatcher(Calls{})
	n.show()
	return n
}

// another is one more instance.
func (n *newsroom) another(name string, models []Model) *Handler {
	h, err := New(Config{Site: n.site, DB: n.db, Queue: cancelling{n.store, n.past}, Models: models, Name: name,
		Now: func() time.Time { return n.now },
		Outdated: func(ctx context.Context) (string, []jobs.Spec, error) {
			content, err := n.content(ctx)
			if err != nil || content == n.shown {
				return content, nil, err
			}
			return content, []jobs.Spec{sitemap.New(struct{}{})}, nil
		},
		Effects: func(_ context.Context, p Publication) ([]jobs.Spec, error) {
			n.told = append(n.told, p)
			return []jobs.Spec{sitemap.New(struct{}{})}, nil
		}})
	n.must(err)
	return h
}

// content stands for what readers can see.
func (n *newsroom) content(ctx context.Context) (string, error) {
	var all []any
	for _, m := range cms.Models() {
		digests, err := n.site.ContentDigest(ctx, m, cms.ContentQuery{Now: n.now})
		if err != nil {
			return "", err
		}
		all = append(all, digests)
	}
	return fmt.Sprint(all...), nil
}

// show makes the sitemap.
func (n *newsroom) show() {
	n.t.Helper()
	var err error
	n.shown, err = n.content(context.Background())
	n.must(err)
}

func (n *newsroom) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *newsroom) sql(statement string, args ...any) {
	n.t.Helper()
	_, err := n.db.Exec(n.db.Rebind(statement), args...)
	n.must(err)
}

func (n *newsroom) load(dump string) {
	n.t.Helper()
	client, err := exec.LookPath("mariadb")
	if err != nil {
		n.t.Skip("no mariadb client to load the dump")
	}
	var name, port string
	n.must(n.db.QueryRow("SELECT DATABASE(), @@port").Scan(&name, &port))
	in, err := os.Open(dump)
	n.must(err)
	defer in.Close()
	load := exec.Command(client, "--no-defaults", "--host=127.0.0.1", "--port="+port, "--user=root",
		"--default-character-set=utf8mb4", name)
	load.Stdin = in
	if out, err := load.CombinedOutput(); err != nil {
		n.t.Fatalf("loading the dump: %v\n%s", err, out)
	}
}

func (n *newsroom) zone() *time.Location {
	zone, err := n.site.Zone(context.Background())
	n.must(err)
	return zone
}

func (n *newsroom) wall(t time.Time) string { return cms.WallClock(t, n.zone()) }

// look lets the watcher look, and says whether it asked for a new sitemap.
func (n *newsroom) look() string {
	n.t.Helper()
	changed, err := n.watcher.Look(context.Background())
	n.must(err)
	if changed {
		return "changed"
	}
	return ""
}

func (n *newsroom) said() string {
	var words []string
	for _, c := range n.told {
		words = append(words, c.Model+" "+c.ID+" published "+c.URL)
	}
	return strings.Join(words, ", ")
}

// pending lists the publications that wait, by their moment.
func (n *newsroom) pending() string {
	n.t.Helper()
	list, err := n.past.Jobs(context.Background(), jobs.Filter{Statuses: []jobs.Status{jobs.StatusQueued},
		Types: []string{"content.publish"}}, jobs.Page{Limit: 100})
	n.must(err)
	var words []string
	for _, j := range list.Items {
		words = append(words, fmt.Sprintf("%s+%v", j.UUID[:0], j.RunAt.Sub(noon)))
	}
	return strings.Join(words, " ")
}

// work runs all due publications as a worker does, and returns their outcomes.
func (n *newsroom) work() string {
	n.t.Helper()
	n.told = nil
	var outcomes []string
	registry := jobs.NewRegistry()
	n.handler.Register(registry)
	claimed, err := n.store.Claim(context.Background(), jobs.ClaimRequest{Worker: "w", Queues: []string{"default"},
		Limit: 50, Lease: time.Minute})
	n.must(err)
	for _, c := range claimed {
		entry, known := registry.Lookup(c.Job.Type)
		end := jobs.Settlement{Claimed: c, Outcome: jobs.Completed, Worker: "w", Started: n.now}
		if known {
			run := jobs.NewRun(func() time.Time { return n.now })
			n.must(entry.Run(jobs.WithRun(context.Background(), run), c.Job))
			end.Result, end.FollowUps = run.Result()
			var r Result
			n.must(json.Unmarshal(end.Result, &r))
			outcomes = append(outcomes, r.Outcome)
			if r.Outcome == published || r.Outcome == refreshed {
				if len(end.FollowUps) != 1 {
					n.t.Errorf("%d jobs follow a publication", len(end.FollowUps))
				}
			}
		}
		failed, err := n.store.Settle(context.Background(), []jobs.Settlement{end})
		n.must(err)
		n.must(failed[0])
	}
	return strings.Join(outcomes, " ")
}

func (n *newsroom) expect(what, got, want string) {
	n.t.Helper()
	if got != want {
		n.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// public says whether the sitemap would show a post now.
func (n *newsroom) public(id string) string {
	n.t.Helper()
	for item, err := range n.site.Content(context.Background(), cms.Models()[1], cms.ContentQuery{Now: n.now}) {
		n.must(err)
		if item.ID == id {
			return "shown"
		}
	}
	return "hidden"
}

// The post-scheduler of the real CMS: the date is created_at, and it is saved
// without a word, updated_at stays.
func TestThePostSchedulerOfTheRealCMS(t *testing.T) {
	jobstest.EachMySQL(t, testThePostSchedulerOfTheRealCMS)
}

func testThePostSchedulerOfTheRealCMS(t *testing.T, engine jobstest.Engine) {
	n := newNewsroom(t, engine, jobstest.Fixture(t, "database.sql"))
	n.sql("REPLACE INTO settings (`key`, value) VALUES ('time_zone', 'Asia/Ho_Chi_Minh')")
	date := func(id int, at time.Time) { n.sql("UPDATE posts SET created_at = ? WHERE id = ?", n.wall(at), id) }
	n.expect("the first look", n.look(), "")

	date(3, noon.Add(2*time.Hour))
	date(4, noon.Add(3*time.Hour))
	date(5, noon.Add(3*time.Hour))
	n.expect("looking", n.look(), "changed")
	n.expect("pending", n.pending(), "+3h0m0s +3h0m0s +2h0m0s")
	n.look()
	n.expect("pending, looked at again", n.pending(), "+3h0m0s +3h0m0s +2h0m0s")

	date(3, noon.Add(time.Hour))                            // moved
	n.sql("UPDATE posts SET status = 'draft' WHERE id = 4") // withdrawn
	n.sql("DELETE FROM posts WHERE id = 5")
	n.look()
	n.expect("moved, withdrawn, deleted", n.pending(), "+1h0m0s")
	n.expect("before its moment", n.public("3"), "hidden")
	n.now = noon.Add(59 * time.Minute)
	n.expect("nothing is due", n.work(), "")

	n.now = noon.Add(time.Hour)
	n.expect("at its moment", n.work(), "refreshed")
	n.expect("who is notified", n.said(), "posts 3 published https://news.example/"+n.slug(3))
	n.expect("at its moment", n.public("3"), "shown")
	n.show()
	n.now = noon.Add(time.Hour + time.Minute)
	n.expect("the watcher does not ask again", n.look(), "")
	n.expect("nothing is left", n.pending(), "")

	// What became public while nobody watched is found afterwards.
	date(6, noon.Add(90*time.Minute))
	n.now = noon.Add(2 * time.Hour)
	n.expect("looking late", n.look(), "changed")
	n.expect("and not twice", n.look(), "")
}

func (n *newsroom) slug(id int) string {
	var prefix, key string
	n.must(n.db.QueryRow("SELECT prefix, `key` FROM slugs WHERE reference_type = ? AND reference_id = ? ORDER BY id "+
		"LIMIT 1", `Botble\Blog\Models\Post`, id).Scan(&prefix, &key))
	return strings.TrimPrefix(prefix+"/"+key, "/")
}

// Whatever changes what readers see makes one new sitemap; what they do not
// see makes none.
func TestEditsMakeOneSitemapEach(t *testing.T) {
	jobstest.EachMySQL(t, testEditsMakeOneSitemapEach)
}

func testEditsMakeOneSitemapEach(t *testing.T, engine jobstest.Engine) {
	n := newNewsroom(t, engine, jobstest.Fixture(t, "database.sql"))
	n.expect("the first look", n.look(), "")
	const post = `Botble\Blog\Models\Post`
	for _, c := range []struct{ name, statement, want string }{
		{"withdrawn", "UPDATE posts SET status = 'draft' WHERE id = 7", "changed"},
		{"an edit of a draft", "UPDATE posts SET name = 'x', updated_at = '2026-03-10 11:59:00' WHERE id = 7", ""},
		{"published", "UPDATE posts SET status = 'published' WHERE id = 7", "changed"},
		{"edited", "UPDATE posts SET updated_at = '2026-03-10 11:59:30' WHERE id = 8", "changed"},
		{"read", "UPDATE posts SET views = views + 1", ""},
		{"renamed", "UPDATE slugs SET `key` = 'renamed' WHERE reference_id = 9 AND reference_type = '" + post + "'",
			"changed"},
		{"deleted", "DELETE FROM posts WHERE id = 8", "changed"},
		{"a page", "UPDATE pages SET status = 'draft' WHERE id = 2", "changed"},
	} {
		n.sql(strings.ReplaceAll(c.statement, `\`, `\\`))
		n.expect(c.name, n.look(), c.want)
		n.expect(c.name+", looked at again", n.look(), "")
		n.show()
	}

	other := n.another("second", nil).NewWatcher(Calls{})
	n.sql("DELETE FROM posts WHERE id = 9")
	if changed, err := other.Look(context.Background()); err != nil || changed {
		t.Errorf("a second instance watches too: %t, %v", changed, err)
	}
	n.now = n.now.Add(time.Hour) // the first one died
	if changed, err := other.Look(context.Background()); err != nil || !changed {
		t.Errorf("the second instance does not take over: %t, %v", changed, err)
	}
}

// What is written while an instance is away is found by its first look.
func TestEditsWhileNobodyWatched(t *testing.T) {
	n := newNewsroom(t, jobstest.SQLite, "")
	n.look()
	n.sql("INSERT INTO posts (id, name, status, created_at, updated_at) VALUES (1, 'A post', 'published', " +
		"'2026-01-01 00:00:00', '2026-01-01 00:00:00')")
	n.watcher = n.handler.NewWatcher(Calls{})
	n.expect("the next instance", n.look(), "changed")
}

// A watcher that ends releases its lease: the one that is started next, after
// a restart, watches at once and not when the lease would have ended.
func TestAWatcherThatEndsLetsTheNextOneWatch(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			n := newNewsroom(t, engine, "")
			n.look()
			other := n.another("second", nil)
			if mine, err := other.lease(context.Background()); err != nil || mine {
				t.Fatalf("both watch: %v, %v", mine, err)
			}
			ctx, stop := context.WithCancel(context.Background())
			stop()
			n.must(n.watcher.Run(ctx))
			if mine, err := other.lease(context.Background()); err != nil || !mine {
				t.Errorf("the next watcher has to wait: %v, %v", mine, err)
			}
		})
	}
}

// Drafts with a date in their own column, on all databases.
func TestDraftsWithADateArePublished(t *testing.T) {
	model := Model{Model: cms.Model{Name: "posts", Class: "Post", Scheduled: true}, DateColumn: "publish_at"}
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			n := newNewsroom(t, engine, "", model)
			add := func(id int, status string, at any) {
				n.sql("INSERT INTO posts (id, name, status, publish_at, created_at, updated_at) VALUES (?, 'A post', "+
					"?, ?, '2026-01-01 00:00:00', '2026-01-01 00:00:00')", id, status, at)
			}
			add(1, "draft", n.wall(noon.Add(time.Hour)))
			add(2, "pending", n.wall(noon.Add(time.Hour)))
			add(3, "draft", nil)
			add(4, "draft", "2020-01-01 00:00:00") // from before this service
			add(5, "draft", n.wall(noon.Add(-time.Hour)))
			n.look()
			n.expect("pending", n.pending(), "+1h0m0s +1h0m0s +-1h0m0s")
			n.expect("overdue", n.work(), "published")
			n.sql("UPDATE posts SET publish_at = NULL WHERE id = 2")
			n.now = noon.Add(time.Hour)
			n.expect("one of them was withdrawn behind our back", n.work(), "published withdrawn")
			var statuses []string
			n.must(n.db.Select(&statuses, "SELECT status FROM posts ORDER BY id"))
			n.expect("statuses", strings.Join(statuses, " "), "published pending draft draft published")
			n.told = nil
			n.now = noon.Add(time.Hour + time.Minute)
			n.look()
			n.expect("nothing is left", n.pending(), "")
		})
	}
}

func TestWhatAJobDoesWithARow(t *testing.T) {
	now, later, earlier := noon, noon.Add(time.Hour), noon.Add(-time.Hour)
	posts := Model{Model: cms.Model{Name: "posts", Scheduled: true}.WithDefaults()}
	dated := posts
	dated.DateColumn = "publish_at"
	for _, c := range []struct {
		name  string
		m     Model
		e     cms.Entry
		found bool
		p     Payload
		want  string
	}{
		{"deleted", posts, cms.Entry{}, false, Payload{}, gone},
		{"publish it now", posts, cms.Entry{Status: "draft"}, true, Payload{}, published},
		{"publish it at", posts, cms.Entry{Status: "pending"}, true, Payload{At: &earlier}, published},
		{"too early", posts, cms.Entry{Status: "draft"}, true, Payload{At: &later}, moved},
		{"dated by its column", dated, cms.Entry{Status: "draft", Date: earlier}, true, Payload{At: &later}, published},
		{"moved by its column", dated, cms.Entry{Status: "draft", Date: later}, true, Payload{At: &earlier}, moved},
		{"date taken away", dated, cms.Entry{Status: "draft"}, true, Payload{At: &earlier}, withdrawn},
		{"a draft is not published by a refresh", posts, cms.Entry{Status: "draft"}, true, Payload{Refresh: true},
			withdrawn},
		{"public and come", posts, cms.Entry{Status: "published", Created: earlier}, true, Payload{Refresh: true},
			refreshed},
		{"public and moved", posts, cms.Entry{Status: "published", Created: later}, true, Payload{Refresh: true},
			moved},
		{"another state", posts, cms.Entry{Status: "archived"}, true, Payload{}, withdrawn},
	} {
		if got, _ := decide(c.m, c.e, c.found, c.p, now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestPayloadsAsOthersSendThem(t *testing.T) {
	registry := jobs.NewRegistry()
	n := newNewsroom(t, jobstest.SQLite, "")
	n.handler.Register(registry)
	for payload, good := range map[string]bool{`{"id":12}`: true, `{"id":"01J0"}`: true, `{"postId":7}`: true,
		`{"model":"page","id":1}`: true, `{}`: false, `{"id":1.5}`: false, `{"id":true}`: false} {
		entry, known := registry.Lookup("publish_post")
		if err := entry.Check(json.RawMessage(payload)); !known || (err == nil) != good {
			t.Errorf("%s: %v", payload, err)
		}
	}
	entry, _ := registry.Lookup("content.publish")
	if err := entry.Run(context.Background(),
		jobs.Job{Type: "content.publish", Data: []byte(`{"model":"nothing","id":1}`)}); !jobs.IsPermanent(err) {
		t.Errorf("an unknown model: %v", err)
	}
}
