package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// release is one version of Laravel, as internal/cms/laravel recorded it: its
// skeleton's prefixes, and what it put before keys by site name and store.
type release struct {
	Framework, Skeleton string
	Cache, Database     string
	Prefixes            map[string]map[string]string
}

func (r release) major() string {
	major, _, _ := strings.Cut(r.Framework, ".")
	return major
}

func releases(t *testing.T) (all []release) {
	t.Helper()
	text, err := os.ReadFile("../../cms/laravel/testdata/prefixes.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) < 8 {
		t.Fatalf("%d recorded versions: %v", len(all), err)
	}
	return all
}

// frameworks are the folders of the Laravels that are here, by major version:
// Debian's, and those in CMSJOBS_TEST_LARAVELS (include paths, divided by ;).
func frameworks(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, path := range strings.Split("/usr/share/php;"+os.Getenv("CMSJOBS_TEST_LARAVELS"), ";") {
		if path == "" {
			continue
		}
		if version, err := php(path, t.TempDir(), "version", nil); err == nil {
			major, _, _ := strings.Cut(version, ".")
			found[major] = path
		}
	}
	if len(found) == 0 {
		jobstest.Skip(t, "no Laravel here (packages php-cli, php-redis, php-sqlite3, php-laravel-framework)")
	}
	return found
}

func php(framework, dir, op string, env cms.Env) (string, error) {
	text, err := json.Marshal(env)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("php", "-d", "include_path="+framework, "testdata/laravel.php", dir, op)
	cmd.Env = append(os.Environ(), "APP_ENV_JSON="+string(text))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("php %s: %w: %s", op, err, out)
	}
	return string(out), nil
}

// application writes a site's config files as the skeleton of r has them.
func (h *laravelSite) application(r release, database int) {
	h.write("vendor/laravel/framework/src/Illuminate/Foundation/Application.php",
		"<?php class Application { const VERSION = '"+r.Framework+"'; }")
	h.write("config/cache.php", `<?php
use Illuminate\Support\Str;
return [
    'default' => env('CACHE_DRIVER', 'file'),
    'stores' => [
        'file' => ['driver' => 'file', 'path' => storage_path('framework/cache/data')],
        'database' => ['driver' => 'database', 'table' => 'cache', 'connection' => null],
        'redis' => ['driver' => 'redis', 'connection' => 'cache', 'lock_connection' => 'default'],
    ],
    'prefix' => env('CACHE_PREFIX', `+r.Cache+`),
];`)
	h.write("config/database.php", `<?php
use Illuminate\Support\Str;
return [
    'default' => 'sqlite',
    'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => env('DB_DATABASE'), 'prefix' => '']],
    'redis' => [
        'client' => 'phpredis',
        'options' => ['prefix' => env('REDIS_PREFIX', `+r.Database+`)],
        'cache' => ['host' => '127.0.0.1', 'port' => env('REDIS_PORT', 6379), 'database' => `+strconv.Itoa(database)+`],
        'default' => ['host' => '127.0.0.1', 'port' => env('REDIS_PORT', 6379), 'database' => 0],
    ],
];`)
}

// fill writes 41 entries: by the real Laravel where it is here, else with the
// prefix that the real one was recorded to write.
func (h *laravelSite) fill(t *testing.T, framework string, r release, store string, c *redis.Client) {
	if framework != "" {
		if _, err := php(framework, h.site.Root, "put", h.site.Env); err != nil {
			t.Fatal(err)
		}
		return
	}
	prefix, known := r.Prefixes[h.site.Env["APP_NAME"]][store]
	if !known && store != "file" {
		t.Fatalf("nothing is recorded of %s, %q", store, h.site.Env["APP_NAME"])
	}
	for i := range 41 {
		key := fmt.Sprintf("k%d", i)
		switch store {
		case "redis":
			set(t, c, prefix+key)
		case "database":
			h.row("cache", "v", prefix+key, 9999999999)
		case "file":
			h.entry(key, 9999999999)
		}
	}
}

// size counts a store's entries.
func (h *laravelSite) size(t *testing.T, store string, c *redis.Client) int64 {
	switch store {
	case "redis":
		return c.DBSize(context.Background()).Val()
	case "database":
		return h.count("SELECT COUNT(*) FROM cache")
	}
	var n int64
	err := filepath.WalkDir(filepath.Join(h.site.Root, dataFolder), func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return n
}

// Each release × name × store: entries before, after our cache.clear, and after
// Laravel's own. "real" says that a Laravel of that major version wrote and
// cleared them; "recorded" that this test wrote them, with the prefixes that the
// real one had.
func TestClearingBesideLaravelsOwn(t *testing.T) {
	here := frameworks(t)
	port := jobstest.Redis(t).Port
	names := map[string]string{"ascii": "My Shop", "vietnamese": "Báo Điện tử", "bengali": "বাংলা সংবাদ",
		"emoji": "📰 News", "only emoji": "📰", "empty": ""}
	database := 5
	c := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port), DB: database})
	defer c.Close()
	for _, r := range releases(t) {
		framework, how := here[r.major()], "real"
		if framework == "" {
			how = "recorded"
		}
		for _, store := range []string{"redis", "database", "file"} {
			for kind, name := range names {
				t.Run(fmt.Sprintf("%s %s/%s/%s", r.Skeleton, how, store, kind), func(t *testing.T) {
					c.FlushDB(context.Background())
					h := newLaravelSite(t, jobstest.SQLite, cms.Env{"CACHE_DRIVER": store, "APP_NAME": name,
						"REDIS_PORT": strconv.Itoa(port)})
					h.application(r, database)
					h.cacheTables()
					h.site.Env["DB_DATABASE"] = h.databaseFile()
					foreign := int64(0)
					switch store {
					case "redis":
						set(t, c, "another_database_another_cache:k1", "sessions")
						foreign = 2
					case "database":
						h.row("cache", "v", "another_cache_k1", 9999999999)
						foreign = 1
					}
					h.fill(t, framework, r, store, c)
					before := h.size(t, store, c)
					report, _ := h.run("cache.clear", `{}`)
					after := h.size(t, store, c)
					if before != 41+foreign || after != foreign || len(report.Notes) > 0 || report.Failures > 0 {
						t.Errorf("%d entries before, %d after, %d of them foreign: %+v", before, after, foreign, report)
					}
					if framework == "" {
						return
					}
					h.fill(t, framework, r, store, c)
					if _, err := php(framework, h.site.Root, "clear", h.site.Env); err != nil {
						t.Fatal(err)
					}
					if left := h.size(t, store, c); left != 0 {
						t.Errorf("Laravel's own clearing left %d", left)
					}
				})
			}
		}
	}
}

func (h *laravelSite) databaseFile() string {
	var rows []struct {
		Seq  int
		Name string
		File string
	}
	if err := h.site.DB.Select(&rows, "PRAGMA database_list"); err != nil || len(rows) == 0 {
		h.t.Fatalf("the database's file: %v", err)
	}
	return rows[0].File
}

// Laravel tags entries, we clear the tag, Laravel looks.
func TestTagsOfLaravelAreClearedInRedis(t *testing.T) {
	port := jobstest.Redis(t).Port
	for major, framework := range maps.All(frameworks(t)) {
		t.Run("real "+major, func(t *testing.T) {
			c := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port), DB: 6})
			defer c.Close()
			c.FlushDB(context.Background())
			h := newLaravelSite(t, jobstest.SQLite, cms.Env{"CACHE_DRIVER": "redis", "APP_NAME": "Báo",
				"REDIS_PORT": strconv.Itoa(port)})
			for _, r := range releases(t) {
				if r.major() == major {
					h.application(r, 6)
				}
			}
			ask := func(op string) string {
				out, err := php(framework, h.site.Root, op, h.site.Env)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			ask("tag")
			if got := ask("tagged"); got != `[40,"v","v"]` {
				t.Fatalf("Laravel's own: %s", got)
			}
			dry, _ := h.run("cache.clear", `{"tags":["posts"],"dryRun":true}`)
			if got := ask("tagged"); dry.Keys != 40 || got != `[40,"v","v"]` {
				t.Errorf("dry-run: %+v, left %s", dry, got)
			}
			r, _ := h.run("cache.clear", `{"tags":["posts"]}`)
			if got := ask("tagged"); r.Keys != 40 || r.Failures > 0 || got != `[0,"v","v"]` {
				t.Errorf("%+v, left %s", r, got)
			}
			ask("tag")
			// the CMS knows no such tag, Laravel does
			if r, _ := h.run("cache.clear", `{"tags":["people"]}`); r.Keys != 20 || len(r.Notes) > 0 {
				t.Errorf("%+v", r)
			}
			if got := ask("tagged"); got != `[20,"v","v"]` {
				t.Errorf("left %s", got)
			}
		})
	}
}

func TestAClearingThatRemovesNothingSaysSo(t *testing.T) {
	h, c := redisSite(t, 7, cms.Env{"APP_NAME": "Shop"})
	set(t, c, "renamed_database_renamed_cache_k1", "renamed_database_renamed_cache_k2")
	r, _ := h.run("cache.clear", `{}`)
	if r.Untouched != 2 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "shop_database_shop_cache_") ||
		!strings.Contains(r.Notes[0], "cache.prefix") {
		t.Errorf("redis: %+v", r)
	}
	h = newLaravelSite(t, jobstest.SQLite, cms.Env{"CACHE_STORE": "database", "APP_NAME": "Shop"})
	h.cacheTables()
	h.row("cache", "v", "renamed_cache_k1", 9999999999)
	if r, _ := h.run("cache.clear", `{}`); r.Untouched != 1 || len(r.Notes) != 1 {
		t.Errorf("database: %+v", r)
	}
	h.sql("DELETE FROM cache")
	if r, _ := h.run("cache.clear", `{}`); r.Untouched != 0 || len(r.Notes) != 0 {
		t.Errorf("an empty store: %+v", r)
	}
	h = newLaravelSite(t, jobstest.SQLite, cms.Env{})
	h.write(dataFolder+"/not-laravels", "x")
	if r, _ := h.run("cache.clear", `{}`); r.Untouched != 1 || len(r.Notes) != 1 {
		t.Errorf("file: %+v", r)
	}
}
