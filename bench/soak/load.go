package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// order is one job as the CMS would write it.
type order struct {
	asked
	key     int
	payload map[string]any
	tries   int    // maxTries of the row; 0 leaves it to the kind
	queue   string // "" is default
}

// part is a kind's share of the load.
type part struct {
	kind   string
	second float64 // so many a second
	make   func(l *lab, o *order) error
}

// mix is what comes in, all kinds that a site enqueues.
var mix = []part{
	{"webhook.deliver", 40, hook},
	{"mail.send", 15, letter},
	{"cmsjobs.probe", 15, probe},
	{"cache.clear", 2, fixed(map[string]any{"tags": []string{"posts", "menus"}})},
	{"content.publish", 1, publication},
	{"media.processImage", 0.3, picture},
	{"notification.send", 0.2, notice},
	{"sitemap.generate", 0.2, fixed(map[string]any{"force": true})},
	{"sitemap.indexnow", 0.1, fixed(nil)},
	{"cache.clearExpired", 0.1, fixed(nil)},
	{"logs.cleanup", 0.1, fixed(nil)},
	{"analytics.process", 0.1, fixed(nil)},
	{"queue.clean", 0.05, fixed(nil)},
	{"maintenance.cleanup", 0.02, fixed(nil)},
	{"backup.generate", 1.0 / 150, fixed(nil)},
	{"backup.verify", 1.0 / 300, fixed(map[string]any{"level": "parsed"})},
}

// load asks for jobs by plain INSERTs, as the CMS does.
type load struct {
	lab *lab

	mu     sync.Mutex
	asked  map[int]asked
	keys   int // given so far
	acked  int
	debt   []float64 // what each part of the mix still owes
	views  int       // lines of access logs that were imported
	logs   int
	halves map[string]int // orders whose preparation failed half way, by kind
}

func newLoad(l *lab) *load {
	return &load{lab: l, asked: map[int]asked{}, debt: make([]float64, len(mix)), halves: map[string]int{}}
}

// tick asks for what a tenth of a second brings.
func (a *load) tick(ctx context.Context) error {
	var batch []order
	for i, p := range mix {
		for a.debt[i] += p.second / 10; a.debt[i] >= 1; a.debt[i]-- {
			if o, made := a.order(p.kind, p.make); made {
				batch = append(batch, o)
			}
		}
	}
	return a.ask(ctx, batch)
}

// order prepares one job; false where its disk is full, or its database away.
func (a *load) order(kind string, prepare func(*lab, *order) error) (order, bool) {
	a.mu.Lock()
	o := order{key: a.keys, asked: asked{kind: kind}}
	a.keys++
	a.mu.Unlock()
	err := prepare(a.lab, &o)
	if err != nil {
		a.mu.Lock()
		a.halves[kind]++
		a.mu.Unlock()
	}
	return o, err == nil
}

// ask inserts a batch. When that fails nobody knows whether it is there.
func (a *load) ask(ctx context.Context, batch []order) error {
	if len(batch) == 0 {
		return nil
	}
	rows, args := make([]string, len(batch)), make([]any, 0, 3*len(batch))
	now := time.Now()
	for i, o := range batch {
		wait := 0
		if o.key%30 == 0 {
			wait = 3
		}
		payload := map[string]any{"type": o.kind, "uuid": uuidOf(o.key)}
		for name, value := range o.payload {
			payload[name] = value
		}
		if o.tries > 0 {
			payload["maxTries"] = o.tries
		}
		text, err := json.Marshal(payload)
		if err != nil {
			return err
		}
		rows[i], args = "(?, ?, 0, NULL, UNIX_TIMESTAMP() + ?, UNIX_TIMESTAMP())",
			append(args, cmp.Or(o.queue, "default"), string(text), wait)
		batch[i].due = now.Add(time.Duration(wait) * time.Second)
	}
	// the end of the run cuts nothing off
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err := a.lab.db.ExecContext(call, "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, "+
		"created_at) VALUES "+strings.Join(rows, ", "), args...)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range batch {
		o.acked = err == nil
		a.asked[o.key] = o.asked
	}
	if err == nil {
		a.acked += len(batch)
	}
	return nil
}

const uuidStart = "50a00000-0000-4000-8000-"

func uuidOf(key int) string { return fmt.Sprintf("%s%012d", uuidStart, key) }

// keyOf is the way back; false for jobs that others made.
func keyOf(uuid string) (int, bool) {
	digits, ours := strings.CutPrefix(uuid, uuidStart)
	key, err := strconv.Atoi(digits)
	return key, ours && err == nil
}

func fixed(payload map[string]any) func(*lab, *order) error {
	return func(_ *lab, o *order) error { o.payload = payload; return nil }
}

func probe(_ *lab, o *order) error {
	o.payload = map[string]any{"sleep": (time.Duration(rand.IntN(20)) * time.Millisecond).String()}
	if o.key%20 == 0 {
		o.queue, o.rare = rareQueue, true
	}
	switch rand.IntN(300) {
	case 0:
		o.payload["sleep"] = (2 * lease).String() // longer than its lease
	case 1:
		o.payload["fail"], o.want, o.tries = "asked to", failed, 2
	}
	return nil
}

// hook is a webhook whose receiver does what its data says.
func hook(l *lab, o *order) error {
	host, data := 10+o.key%40, map[string]any{}
	switch roll := rand.IntN(1000); {
	case roll < 3:
		data["wait"] = (2 * lease).Milliseconds()
	case roll < 13:
		data["fail"] = 1 + rand.IntN(2)
	case roll < 16:
		data["fail"], o.want, o.tries = 1000, failed, 2
	default:
		data["wait"] = rand.IntN(5)
	}
	o.payload = map[string]any{"url": l.hooks.url(host) + "/hook", "event": "soak.hook", "data": data}
	return nil
}

// letter is a mail to an address that says what its server does with it.
func letter(_ *lab, o *order) error {
	to := "take"
	switch roll := rand.IntN(1000); {
	case roll < 10:
		to = "later"
	case roll < 15:
		to, o.want = "never", failed
	case roll < 18:
		to, o.want = "silent", either
	}
	o.payload = map[string]any{"to": fmt.Sprintf("%s.%d@soak.example", to, o.key),
		"subject": fmt.Sprintf("Letter %d", o.key), "body": "<p>Still there?</p>"}
	return nil
}

func notice(_ *lab, o *order) error {
	o.payload = map[string]any{"title": fmt.Sprintf("Notice %d", o.key), "message": "Still there?",
		"topic": fmt.Sprintf("soak-%d", o.key)}
	return nil
}

// publication is a draft that falls due now.
func publication(l *lab, o *order) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	name := fmt.Sprintf("soak %d", o.key)
	if rand.IntN(20) == 0 {
		name, o.want, o.tries = fmt.Sprintf("refused %d", o.key), failed, 2 // see makeSite
	}
	result, err := l.db.ExecContext(ctx, "INSERT INTO posts (name, content, status, author_id, author_type, "+
		"created_at, updated_at) VALUES (?, 'x', 'draft', 1, ?, UTC_TIMESTAMP(), UTC_TIMESTAMP())",
		name, `Botble\ACL\Models\User`)
	if err != nil {
		return err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return err
	}
	if _, err := l.db.ExecContext(ctx, "INSERT INTO slugs (`key`, reference_id, reference_type, prefix) VALUES (?, "+
		"?, ?, 'blog')", fmt.Sprintf("soak-%d", id), id, `Botble\Blog\Models\Post`); err != nil {
		return err
	}
	o.payload = map[string]any{"model": "posts", "postId": id}
	return nil
}

// picture is a new upload.
func picture(l *lab, o *order) error {
	url := fmt.Sprintf("photos/soak-%d.jpg", o.key)
	if err := copyFile(l.upload("photos/harbour-1.jpg"), l.upload(url)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	result, err := l.db.ExecContext(ctx, "INSERT INTO media_files (name, mime_type, size, url, options, created_at, "+
		"updated_at) VALUES (?, 'image/jpeg', 1, ?, '[]', UTC_TIMESTAMP(), UTC_TIMESTAMP())", url, url)
	if err != nil {
		return err
	}
	id, err := result.LastInsertId()
	o.payload = map[string]any{"mediaFileId": id}
	return err
}

func (l *lab) upload(url string) string {
	return filepath.Join(l.site, "public", "storage", filepath.FromSlash(url))
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// visits imports an access log; the same log again adds nothing, so it is
// imported until that succeeds.
func (a *load) visits(ctx context.Context) error {
	const lines = 500
	a.logs++
	path, now := filepath.Join(a.lab.dir, fmt.Sprintf("access-%d.log", a.logs)), time.Now().UTC()
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "198.51.100.%d - - [%s] \"GET /blog/soak-%d-%d HTTP/1.1\" 200 512 \"-\" \"Mozilla/5.0 "+
			"(X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0\"\n",
			i%200, now.Add(-time.Duration(i)*time.Millisecond).Format("02/Jan/2006:15:04:05 -0700"), a.logs, i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return err
	}
	for {
		_, err := a.lab.cmsjobs(ctx, "analytics", "import", path)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Second)
	}
	a.mu.Lock()
	a.views += lines
	a.mu.Unlock()
	return os.Remove(path)
}
