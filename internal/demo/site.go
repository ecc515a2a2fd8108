package demo

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// seed makes every demo the same.
const seed = 20240101

// Site is a sample site: how much of everything it has.
type Site struct {
	Name                           string // in the configuration and in addresses
	Dir                            string
	DSN                            string // of a MySQL that holds the CMS; "" is SQLite in the folder
	root                           string // the folder of the demo, where it is not Dir
	title, host                    string
	pages, posts, categories, tags int
	photos                         int
	visits                         int     // in its access log
	busy                           float64 // how much people do there, beside the news site
	shop                           bool    // it has a shop written in PHP, with failures
	fullDisk                       int     // for so many nights there was no space for a backup
}

// NewSite is the sample site below dir, a news site with a shop.
func NewSite(dir string) Site {
	return Site{Name: "news", Dir: dir, title: "Harbour Notes", host: "demo.example", pages: 40, posts: 300,
		categories: 12, tags: 60, photos: 6, visits: 4000, busy: 1, shop: true}
}

// Club is the small second site of a demo, in a folder inside the first one's. Nobody has
// noticed that its backups fail.
func (d Site) Club() Site {
	return Site{Name: "club", Dir: filepath.Join(d.Dir, "club"), root: d.Dir, title: "Rowing Club",
		host:  "club.demo.example",
		pages: 8, posts: 40, categories: 4, tags: 10, photos: 2, visits: 500, busy: 0.35, fullDisk: 5}
}

// url is the address of the site.
func (d Site) url() string { return "https://" + d.host }

func (d Site) database() string { return filepath.Join(d.Dir, "database", "database.sqlite") }

// Exists says whether the folder holds a demo already.
func (d Site) Exists() bool {
	_, err := os.Stat(d.database())
	return err == nil
}

// Make builds the whole site: folders, .env, tables, content, photos. A folder
// that holds something else is left alone, and nothing is left of a site that could not be
// made.
func (d Site) Make(ctx context.Context, now time.Time) (err error) {
	if entries, err := os.ReadDir(d.Dir); err == nil && len(entries) > 0 {
		return app.Usagef("the folder %s holds something else: name an empty one with --dir", d.Dir)
	}
	defer func() { // half a site would be taken for one
		if err != nil {
			err = errors.Join(err, os.RemoveAll(d.Dir))
		}
	}()
	for _, folder := range []string{"database", "public/storage/photos", "storage/logs", "storage/app",
		"storage/framework/cache/data", "storage/framework/views", "bootstrap/cache", "mails"} {
		if err := os.MkdirAll(filepath.Join(d.Dir, filepath.FromSlash(folder)), 0o755); err != nil {
			return fmt.Errorf("making the demo's folders: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(d.Dir, ".env"), []byte(d.env()), 0o600); err != nil {
		return fmt.Errorf("writing the demo's .env: %w", err)
	}
	if err := os.WriteFile(filepath.Join(d.Dir, "public", "robots.txt"), []byte("User-agent: *\nDisallow:\n"),
		0o644); err != nil {
		return fmt.Errorf("writing the demo's robots.txt: %w", err)
	}
	if err := os.WriteFile(d.database(), nil, 0o600); err != nil {
		return fmt.Errorf("making the demo's database: %w", err)
	}
	db, err := database.Connect(ctx, database.ConnectOptions{DSN: cmp.Or(d.DSN, "sqlite:"+d.database())})
	if err != nil {
		return err
	}
	err = d.fill(ctx, db, now)
	return errors.Join(err, db.Close())
}

func (d Site) env() string {
	database := "DB_CONNECTION=sqlite\nDB_DATABASE=database/database.sqlite"
	if u, err := url.Parse(d.DSN); err == nil && d.DSN != "" {
		password, _ := u.User.Password()
		database = fmt.Sprintf(
			"DB_CONNECTION=mysql\nDB_HOST=%s\nDB_PORT=%s\nDB_DATABASE=%s\nDB_USERNAME=%s\nDB_PASSWORD=%q",
			u.Hostname(), cmp.Or(u.Port(), "3306"),
			strings.TrimPrefix(u.Path, "/"), u.User.Username(), password)
	}
	return `APP_NAME="` + d.title + `"
APP_ENV=local
APP_URL=` + d.url() + `
` + database + `
CACHE_STORE=file
QUEUE_CONNECTION=database
MAIL_FROM_ADDRESS=editor@` + d.host + `
MAIL_FROM_NAME="${APP_NAME}"
`
}

func (d Site) fill(ctx context.Context, db *sqlx.DB, now time.Time) error {
	for _, statement := range demoTables {
		if _, err := db.ExecContext(ctx, spell(database.Of(db), statement)); err != nil {
			return fmt.Errorf("making the demo's tables: %w", err)
		}
	}
	if _, err := tables.CreateTables(ctx, db, tables.Stock, ""); err != nil {
		return err
	}
	photos, err := d.drawPhotos(ctx)
	if err != nil {
		return err
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	w := &writer{site: d, ctx: ctx, tx: tx, now: now.UTC(), random: rand.New(rand.NewPCG(seed, 1)),
		used: map[string]bool{}}
	w.settings()
	w.pages(d.pages)
	w.categories(d.categories)
	w.tags(d.tags)
	w.posts(d.posts, photos)
	w.media(photos)
	if w.err != nil {
		return errors.Join(fmt.Errorf("writing the demo's content: %w", w.err), tx.Rollback())
	}
	return tx.Commit()
}

// writer writes content; its first error stays.
type writer struct {
	site   Site
	ctx    context.Context
	tx     *sqlx.Tx
	now    time.Time
	random *rand.Rand
	used   map[string]bool
	err    error
}

func (w *writer) insert(statement string, args ...any) int64 {
	if w.err != nil {
		return 0
	}
	var r sql.Result
	if r, w.err = w.tx.ExecContext(w.ctx, spell(database.Of(w.tx), statement), args...); w.err != nil {
		return 0
	}
	id, err := r.LastInsertId()
	w.err = err
	return id
}

// ago is a wall clock of up to so many days before now.
func (w *writer) ago(days int) string {
	return w.now.Add(-time.Duration(w.random.IntN(days*24*3600)) * time.Second).Format(time.DateTime)
}

func (w *writer) settings() {
	for key, value := range map[string]string{"theme": "harbour", "site_title": w.site.title, "time_zone": "UTC",
		"admin_email":                       `["editor@` + w.site.host + `"]`,
		"permalink-botble-blog-models-post": "blog", "permalink-botble-blog-models-tag": "tag", "show_on_front": "1",
		"sitemap_items_per_page": "1000"} {
		w.insert(`INSERT INTO settings ("key", value) VALUES (?, ?)`, key, value)
	}
	w.insert(`INSERT INTO users (email, first_name, last_name, username, super_user) VALUES (?, 'Ada',
		'Harbour', 'editor', 1)`, "editor@"+w.site.host)
}

func (w *writer) slug(name, class, prefix string, id int64) {
	base := strings.ReplaceAll(strings.ToLower(name), " ", "-")
	key := base
	for n := 2; w.used[prefix+"/"+key]; n++ {
		key = fmt.Sprintf("%s-%d", base, n)
	}
	w.used[prefix+"/"+key] = true
	w.insert(`INSERT INTO slugs ("key", reference_id, reference_type, prefix) VALUES (?, ?, ?, ?)`, key, id, class,
		prefix)
}

func (w *writer) pages(n int) {
	names := []string{"Home", "About us", "Contact", "Imprint", "Timetable", "Our boats", "Opening hours",
		"How to find us"}
	for i := range n {
		name := w.title()
		if i < len(names) {
			name = names[i]
		}
		id := w.insert(`INSERT INTO pages (name, content, description, status, created_at, updated_at) VALUES (?, ?, ?,
			?, ?, ?)`,
			name, w.text(3), w.sentence(), w.status(i), w.ago(700), w.ago(90))
		w.slug(name, `Botble\Page\Models\Page`, "", id)
	}
}

func (w *writer) categories(n int) {
	for range n {
		name := w.pick(nouns) + " and " + strings.ToLower(w.pick(nouns))
		id := w.insert(`INSERT INTO categories (name, description, created_at, updated_at) VALUES (?, ?, ?, ?)`, name,
			w.sentence(), w.ago(700), w.ago(300))
		w.slug(name, `Botble\Blog\Models\Category`, "", id)
	}
}

func (w *writer) tags(n int) {
	for range n {
		name := strings.ToLower(w.pick(adjectives) + " " + w.pick(nouns))
		id := w.insert(`INSERT INTO tags (name, created_at, updated_at) VALUES (?, ?, ?)`, name, w.ago(700), w.ago(300))
		w.slug(name, `Botble\Blog\Models\Tag`, "tag", id)
	}
}

func (w *writer) posts(n int, photos []demoPhoto) {
	for i := range n {
		name := w.title()
		var image any
		if len(photos) > 0 && i%3 == 0 {
			image = photos[i%len(photos)].url
		}
		created := w.ago(600)
		if i == n-2 { // dated ahead: not public yet
			created = w.now.Add(48 * time.Hour).Format(time.DateTime)
		}
		id := w.insert(`INSERT INTO posts (name, description, content, status, author_id, author_type, image, views,
			created_at, updated_at) VALUES (?, ?, ?, ?, 1, 'Botble\ACL\Models\User', ?, ?, ?, ?)`,
			name, w.sentence(), w.text(6), w.status(i), image, w.random.IntN(5000), created, created)
		w.slug(name, `Botble\Blog\Models\Post`, "blog", id)
		w.insert(`INSERT INTO post_categories (category_id, post_id) VALUES (?, ?)`, 1+w.random.IntN(w.site.categories), id)
		w.insert(`INSERT INTO post_tags (tag_id, post_id) VALUES (?, ?)`, 1+w.random.IntN(w.site.tags), id)
	}
}

// status makes every twentieth a draft.
func (w *writer) status(i int) string {
	if i%20 == 19 {
		return "draft"
	}
	return "published"
}

func (w *writer) media(photos []demoPhoto) {
	for _, p := range photos {
		w.insert(`INSERT INTO media_files (name, mime_type, size, url, options, created_at, updated_at) VALUES (?,
			'image/jpeg', ?, ?, '[]', ?, ?)`,
			p.name, p.size, p.url, w.ago(300), w.ago(300))
	}
}
