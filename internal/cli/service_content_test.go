package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// readers are all who hear of the site's content: a search engine, a cache in front of
// the site, a subscriber; and the site itself.
type readers struct {
	*httptest.Server
	mu                   sync.Mutex
	told, purged, events []string
	changes              []string // addresses of content.changed
}

func newReaders(t *testing.T, public string) *readers {
	t.Helper()
	r := &readers{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodGet {
			http.ServeFile(w, q, filepath.Join(public, filepath.Base(q.URL.Path)))
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		var body struct {
			URLList []string
			Type    string
			Data    struct{ URLs json.RawMessage }
		}
		if q.Method == http.MethodPost {
			if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
				t.Error(err)
			}
		}
		switch {
		case q.Method == "PURGE":
			r.purged = append(r.purged, q.RequestURI)
		case q.URL.Path == "/indexnow":
			for _, address := range body.URLList {
				r.told = append(r.told, strings.TrimPrefix(address, r.URL))
			}
		default:
			r.events = append(r.events, body.Type)
			var changes []string
			if body.Type == "content.changed" && json.Unmarshal(body.Data.URLs, &changes) == nil {
				r.changes = append(r.changes, changes...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// forget empties what was heard.
func (r *readers) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.purged, r.events, r.changes = nil, nil, nil, nil
}

// changed is how often the subscriber heard of an address that changed.
func (r *readers) changed(address string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.changes {
		if x == r.URL+address {
			n++
		}
	}
	return n
}

// heard is how often each of them heard of an address, and of a new sitemap.
func (r *readers) heard(address string) (told, purged, updated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := func(list []string, what string) (n int) {
		for _, x := range list {
			if x == what {
				n++
			}
		}
		return n
	}
	return count(r.told, address), count(r.purged, address), count(r.events, "sitemap.updated")
}

// newsSite is a site with posts, without the service.
type newsSite struct {
	t       *testing.T
	db      *sqlx.DB
	dir     string
	dsn     string
	readers *readers
	service *service
	left    int             // jobs that wait for another day
	late    []time.Duration // after an edit that a feed reported
}

// newNewsSite is a real CMS's database on MySQL and MariaDB, the sample's on SQLite,
// and the tables of posts on PostgreSQL. The servers of the first two write a binary
// log, that of the last a logical one.
func newNewsSite(t *testing.T, engine jobstest.Engine) *newsSite {
	t.Helper()
	s := &newsSite{t: t}
	if engine == jobstest.SQLite {
		s.dir, s.db = sampleSite(t)
		s.readers = newReaders(t, filepath.Join(s.dir, "public"))
		moveSite(t, s.dir, s.readers.URL)
		s.dsn = "sqlite:" + filepath.Join(s.dir, "database", "database.sqlite")
	} else {
		s.dir = t.TempDir()
		s.readers = newReaders(t, filepath.Join(s.dir, "public"))
		s.openServer(engine)
		if err := os.MkdirAll(filepath.Join(s.dir, "public"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, ".env"), []byte("APP_URL="+s.readers.URL+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range map[string]string{"indexnow_enabled": "1",
		"indexnow_api_key": "5f0c2e9a-77aa-4a44-9d4e-0123456789ab"} {
		name := database.Of(s.db).Ident("key")
		s.sql("DELETE FROM settings WHERE "+name+" = ?", key)
		s.sql("INSERT INTO settings ("+name+", value) VALUES (?, ?)", key, value)
	}
	return s
}

// openServer makes the site's database on a server.
func (s *newsSite) openServer(engine jobstest.Engine) {
	s.t.Helper()
	db := &jobstest.Database{}
	if engine == jobstest.PostgreSQL {
		server := jobstest.Own(s.t, engine, "-c", "wal_level=logical", "-c", "fsync=off")
		root := sqlx.MustOpen("pgx", jobstest.PostgresDSN(server.Port, "postgres"))
		defer root.Close()
		root.MustExec("CREATE DATABASE site")
		dsn := jobstest.PostgresDSN(server.Port, "site")
		db = &jobstest.Database{DB: sqlx.MustOpen("pgx", dsn), Engine: engine, Driver: "pgx", DSN: dsn}
		s.t.Cleanup(func() { db.Close() })
	} else {
		server := jobstest.Own(s.t, engine, "--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0")
		root := sqlx.NewDb(server.RootMySQL(s.t), "mysql")
		root.MustExec("CREATE DATABASE site CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
		dsn := server.MySQLDSN("site")
		opened, err := sqlx.Open("mysql", dsn+"&multiStatements=true")
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { opened.Close() })
		db = &jobstest.Database{DB: opened, Engine: engine, Driver: "mysql", DSN: dsn}
	}
	s.db, s.dsn = db.DB, db.DSN
	if engine.IsMySQL() {
		loadDump(s.t, db, "database.sql")
	} else {
		for _, statement := range []string{
			`CREATE TABLE posts (id BIGINT PRIMARY KEY, name TEXT, content TEXT, status VARCHAR(60),
				created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
			`CREATE TABLE slugs (id BIGSERIAL PRIMARY KEY, "key" VARCHAR(255), reference_id BIGINT,
				reference_type VARCHAR(255), prefix VARCHAR(120))`,
			`CREATE TABLE settings (id BIGSERIAL PRIMARY KEY, "key" VARCHAR(255), value TEXT)`,
		} {
			s.sql(statement)
		}
	}
	if _, err := tables.CreateTables(s.t.Context(), s.db, tables.Stock, ""); err != nil && !engine.IsMySQL() {
		s.t.Fatal(err)
	}
}

func (s *newsSite) sql(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(s.db.Rebind(statement), args...); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

// write adds a post as a draft, with its address.
func (s *newsSite) write(id int, slug string) {
	s.sql("INSERT INTO posts (id, name, content, status, created_at, updated_at) VALUES (?, 'News', 'x', 'draft', "+
		"'2026-01-01 00:00:00', '2026-01-01 00:00:00')", id)
	s.sql("INSERT INTO slugs ("+database.Of(s.db).Ident("key")+", reference_id, reference_type, prefix) "+
		"VALUES (?, ?, ?, 'news')", slug, id, `Botble\Blog\Models\Post`)
}

// listed says whether the sitemap has an address.
func (s *newsSite) listed(address string) bool {
	files, _ := filepath.Glob(filepath.Join(s.dir, "public", "*.xml"))
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), s.readers.URL+address+"<")
	})
}

// awaits waits until all have heard of an address, and says how long that took.
func (s *newsSite) awaits(what, address string, listed bool) time.Duration {
	s.t.Helper()
	began := time.Now()
	for {
		told, purged, updated := s.readers.heard(address)
		if told == 1 && purged == 1 && updated == 1 && s.listed(address) == listed {
			took := time.Since(began)
			s.t.Logf("%s: all done after %v", what, took.Round(time.Millisecond))
			return took
		}
		if time.Since(began) > 30*time.Second || told > 1 || purged > 1 || updated > 1 {
			s.t.Fatalf("%s of %s: told %d, purged %d, updated %d, listed %t\n%s", what, address, told, purged, updated,
				s.listed(address), s.service.log())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// An editor's work, written by plain SQL: the sitemap, the search engine, the cache and
// the subscriber have it at once and once, with the feed of each database and without.
func TestAnEditIsShownAtOnce(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newNewsSite(t, engine)
			config := fmt.Sprintf("schedule: {enabled: false}\nindexnow: {endpoints: [%q]}\n"+
				"webhook: {allow_private: [127.0.0.0/8], allow_http: true}\n"+
				"purge: {destinations: [{type: varnish, url: %q}], warm: 0}\n", s.readers.URL+"/indexnow", s.readers.URL)
			flags := []string{"--cms=" + s.dir, "--dsn=" + s.dsn}
			first := newService(t, config, flags...)
			first.command("migrate", "up")
			first.command("webhook", "add", s.readers.URL+"/hook", "--events", "sitemap.updated,content.published,content.changed")
			first.command("enqueue", "sitemap.generate", "{}")
			first.command("work", "--stop-when-empty")
			for end := time.Now().Add(30 * time.Second); s.dueSoon() > 0; first.command("work", "--stop-when-empty") {
				if time.Now().After(end) {
					t.Fatal("the jobs of the first sitemap do not end")
				}
			}
			s.left = s.jobs()
			feed := "auto"
			if engine == jobstest.PostgreSQL {
				first.command("migrate", "feed", "--replication")
			}
			// With a feed nobody else finds an edit within a minute.
			alone := map[string]string{"auto": "publish: {probe: 0}\n"}
			for round := range 2 {
				s.service = startService(t, config+"feed: {mode: "+feed+"}\n"+alone[feed], flags...)
				s.edits(feed, 9000+10*round)
				// A machine that does much else may be late; one that is late each time is wrong.
				for ; round == 0 && slices.Min(s.late) > atOnce; s.edits(feed, 9100+len(s.late)) {
					if len(s.late) == 4 {
						t.Fatalf("an edit is shown after %v, want %v", s.late, atOnce)
					}
				}
				if feed != "off" {
					s.dated(feed, 9001+10*round)
				}
				s.service.stop()
				feed = "off"
			}
			if engine == jobstest.MariaDB || engine == jobstest.PostgreSQL { // one of each feed that names rows
				s.byRow(config, flags)
				s.unlisted(config, flags)
			}
		})
	}
}

// atOnce is in which time all have heard of an edit that a feed reports.
const atOnce = 2 * time.Second

func (s *newsSite) edits(feed string, id int) {
	slug := fmt.Sprint("/news/first-", id)
	s.write(id, strings.TrimPrefix(slug, "/news/"))
	s.idle()
	s.readers.forget()
	for _, step := range []struct{ what, statement, address string }{
		{"publish", "UPDATE posts SET status = 'published' WHERE id = ?", slug},
		{"rename", "UPDATE slugs SET " + database.Of(s.db).Ident("key") +
			" = 'second' WHERE reference_id = ? AND prefix = 'news'", "/news/second"},
		{"delete", "DELETE FROM posts WHERE id = ?", "/news/second"},
	} {
		s.sql("UPDATE posts SET name = 'still a draft' WHERE status = 'draft'")
		s.sql(step.statement, id)
		took := s.awaits("feed "+feed+": "+step.what, step.address, step.what != "delete")
		s.readers.forget()
		if step.what == "publish" && feed != "off" { // those that follow at once gather
			s.late = append(s.late, took)
		}
	}
}

// byRow publishes where nobody makes sitemaps: the cache and the subscriber hear of the
// page by the row that the feed names.
func (s *newsSite) byRow(config string, flags []string) {
	s.service = startService(s.t, config+"types: {sitemap.generate: {queue: maps}}\n", flags...)
	defer s.service.stop()
	s.service.command("pause", "maps")
	s.write(9050, "by-row")
	s.readers.forget()
	s.sql("UPDATE posts SET status = 'published', updated_at = '2026-01-02 00:00:00' WHERE id = 9050")
	s.hears("by its row", "/news/by-row")
	if s.listed("/news/by-row") {
		s.t.Error("somebody made a sitemap")
	}
	s.service.command("resume", "maps")
	s.idle()
}

// unlisted is a site whose sitemaps are switched off: its edits are purged and told all
// the same.
func (s *newsSite) unlisted(config string, flags []string) {
	s.sql("DELETE FROM settings WHERE "+database.Of(s.db).Ident("key")+" = ?", "sitemap_enabled")
	s.sql("INSERT INTO settings ("+database.Of(s.db).Ident("key")+", value) VALUES (?, '0')", "sitemap_enabled")
	s.service = startService(s.t, config, flags...)
	defer s.service.stop()
	s.write(9060, "unlisted")
	s.idle()
	s.readers.forget()
	s.sql("UPDATE posts SET status = 'published', updated_at = '2026-01-02 00:00:00' WHERE id = 9060")
	s.hears("without a sitemap", "/news/unlisted")
	s.readers.forget()
	s.sql("DELETE FROM posts WHERE id = 9060")
	s.hears("a deletion without a sitemap", "/news/unlisted")
}

// hears waits until the cache and the subscriber have heard of an address, once.
func (s *newsSite) hears(what, address string) {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		_, purged, _ := s.readers.heard(address)
		changed := s.readers.changed(address)
		if purged == 1 && changed == 1 {
			s.t.Logf("%s: all done after %v", what, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > 30*time.Second || purged > 1 || changed > 1 {
			s.t.Fatalf("%s of %s: purged %d, told %d\n%s", what, address, purged, changed, s.service.log())
		}
	}
}

// noticed waits until the service has made a map of what was written.
func (s *newsSite) noticed() {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, _, updated := s.readers.heard(""); updated > 0 {
			break
		}
		if time.Now().After(end) {
			s.t.Fatalf("no map is made of a new slug\n%s", s.service.log())
		}
	}
	s.idle()
	s.readers.forget()
}

// idle waits until the service has nothing to do.
func (s *newsSite) idle() {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n := s.jobs()
		if n <= s.left {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d jobs are left, not %d", n, s.left)
		}
	}
}

// jobs is how many wait or run that make sitemaps, purge, or notify anybody.
func (s *newsSite) jobs() int { return s.jobsUntil(math.MaxInt32) }

// dueSoon is how many of them are due within a minute: a follow-up may be due in the
// next second.
func (s *newsSite) dueSoon() int { return s.jobsUntil(time.Now().Add(time.Minute).Unix()) }

func (s *newsSite) jobsUntil(due int64) (n int) {
	s.t.Helper()
	if err := s.db.Get(&n, s.db.Rebind("SELECT COUNT(*) FROM jobs WHERE available_at <= ? AND (payload LIKE "+
		"'%\"sitemap.%' OR payload LIKE '%\"cache.purge\"%' OR payload LIKE '%\"webhook.deliver\"%')"),
		due); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// dated publishes a post at its date: it is purged once, with the page that lists it,
// though the new sitemap purges what changed, too.
func (s *newsSite) dated(feed string, id int) {
	slug := fmt.Sprint("/news/dated-", id)
	s.write(id, strings.TrimPrefix(slug, "/news/"))
	s.noticed() // or the map that its slug causes counts for its date
	at := time.Now().UTC().Truncate(time.Second).Add(3 * time.Second)
	s.sql("UPDATE posts SET status = 'published', created_at = ? WHERE id = ?", at.Format(time.DateTime), id)
	s.awaits("feed "+feed+": its date", slug, true)
	if late := time.Since(at); late < 0 {
		s.t.Errorf("it was shown %v before its date", -late)
	} else {
		s.t.Logf("all done %v after its date", late.Round(time.Millisecond))
	}
	s.idle()
	if _, purged, _ := s.readers.heard(slug); purged != 1 {
		s.t.Errorf("its page was purged %d times", purged)
	}
	if told, purged, _ := s.readers.heard("/"); told > 0 || purged != 1 {
		s.t.Errorf("the front page: submitted %d times, purged %d times", told, purged)
	}
	s.readers.forget()
}
