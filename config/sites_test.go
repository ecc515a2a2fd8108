package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cmsDir makes a CMS's folder whose .env names a database.
func cmsDir(t *testing.T, database string) string {
	t.Helper()
	dir := t.TempDir()
	env := "DB_CONNECTION=mysql\nDB_HOST=db.example\nDB_DATABASE=" + database + "\nDB_USERNAME=u\nDB_PASSWORD=p\n"
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(env), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestASiteHasItsOwnAndWhatAllShare(t *testing.T) {
	file := write(t, "sites.yaml", fmt.Sprintf(`
queue: {concurrency: 3, poll: 2s}
http: {url: 'https://jobs.example/'}
types: {mail.send: {timeout: 5m}, sitemap.generate: {timeout: 6m}}
sites:
  shop-a:
    cms: {dir: %q}
    queue: {concurrency: 7}
    types: {mail.send: {timeout: 1m}}
  shop-b: {database: {dsn: 'mysql://u@h/b'}, http: {url: 'https://Jobs.b.example'}}
  shop-c:
`, cmsDir(t, "shop_a")))
	of := func(site string, environ ...string) *Loaded {
		return load(t, Sources{File: file, Site: site, Environ: environ})
	}
	if shared := of(""); !slices.Equal(shared.Sites, []string{"shop-a", "shop-b", "shop-c"}) || shared.Base() != "" ||
		shared.Queue.Concurrency != 3 || shared.HTTP.URL != "https://jobs.example/" {
		t.Errorf("what all share: sites %v, base %q, concurrency %d, url %s", shared.Sites, shared.Base(),
			shared.Queue.Concurrency, shared.HTTP.URL)
	}
	a := of("shop-a", "CMSJOBS_QUEUE_CONCURRENCY=5", "CMSJOBS_QUEUE_POLL=9s")
	if a.Queue.Concurrency != 7 || a.Queue.Poll.String() != "9s" || !strings.Contains(a.Database.DSN.Reveal(), "shop_a") ||
		a.Base() != "/sites/shop-a" || a.HTTP.URL != "https://jobs.example/sites/shop-a" || a.Host() != "" {
		t.Errorf("shop-a: %d %s %s, base %q, url %s", a.Queue.Concurrency, a.Queue.Poll,
			a.Database.DSN, a.Base(), a.HTTP.URL)
	}
	if a.Types["mail.send"].Timeout.String() != "1m0s" || a.Types["sitemap.generate"].Timeout.String() != "6m0s" {
		t.Errorf("shop-a's types: %+v", a.Types)
	}
	if b := of("shop-b", "CMSJOBS_DATABASE_DSN=mysql://u@h/other"); b.Database.DSN.Reveal() != "mysql://u@h/b" ||
		b.Base() != "" || b.Host() != "jobs.b.example" || b.Queue.Concurrency != 3 {
		t.Errorf("shop-b: %s, base %q, host %q", b.Database.DSN, b.Base(), b.Host())
	}
	if c := of("shop-c"); c.Base() != "/sites/shop-c" || c.Queue.Concurrency != 3 {
		t.Errorf("shop-c, which says nothing: base %q, concurrency %d", c.Base(), c.Queue.Concurrency)
	}
	flag := load(t, Sources{File: file, Site: "shop-a", Flags: []Flag{
		{Path: "queue.concurrency", Value: "9", Name: "-n"}}})
	if flag.Queue.Concurrency != 9 {
		t.Errorf("a flag gives %d, want 9", flag.Queue.Concurrency)
	}
	for _, v := range a.Values() {
		if v.Path == "queue.concurrency" && !strings.HasSuffix(v.Origin, "sites.yaml (sites.shop-a)") {
			t.Errorf("the origin of shop-a's concurrency is %q", v.Origin)
		}
	}
}

func TestFaultsOfASiteAreNamedByTheirPath(t *testing.T) {
	file := write(t, "sites.yaml", `
mail: {port: 0}
sites:
  ok: {queue: {concurency: 2, memory: 1GiB}, log: {level: debug}, http: {listen: ':1'}}
  Wrong_Name: {cms: {dir: /x}}
  plain: 5
  list: {queue: {concurrency: 0}, types: {mail.send: {timout: 1m}}}
`)
	_, err := Load(Sources{File: file})
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	for path, part := range map[string]string{
		"sites.ok.queue.concurency": "did you mean sites.ok.queue.concurrency?", "sites.ok.queue.memory": "at the top",
		"sites.ok.log.level": "at the top", "sites.ok.http.listen": "at the top",
		"sites.Wrong_Name.cms.dir": "letters a to z", "sites.plain": "a section is wanted",
		"sites.list.types.mail.send.timout": "no such key", "mail.port": ""} {
		if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Path == path && strings.Contains(f.Problem, part) }) {
			t.Errorf("no fault at %s with %q in:\n%v", path, part, faults)
		}
	}
	_, err = Load(Sources{File: file, Site: "list"})
	if !errors.As(err, &faults) || !slices.ContainsFunc(faults, func(f Fault) bool {
		return f.Path == "sites.list.queue.concurrency"
	}) || !slices.ContainsFunc(faults, func(f Fault) bool { return f.Path == "mail.port" }) {
		t.Errorf("the faults of the site list: %v", err)
	}
	var unknown UnknownSite
	if _, err = Load(Sources{File: file, Site: "never"}); !errors.As(err, &unknown) ||
		!strings.HasSuffix(err.Error(), "there are list, ok") {
		t.Errorf("an unknown site: %v", err)
	}
}
