package cache

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// redisSite is a CMS whose cache is in a database of the shared server.
func redisSite(t *testing.T, database int, env cms.Env) (*laravelSite, *redis.Client) {
	port := jobstest.Redis(t).Port
	env["CACHE_STORE"], env["REDIS_PORT"], env["REDIS_CACHE_DB"] = "redis", fmt.Sprint(port), fmt.Sprint(database)
	client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port), DB: database})
	t.Cleanup(func() {
		client.FlushDB(context.Background())
		client.Close()
	})
	return newLaravelSite(t, jobstest.SQLite, env), client
}

func set(t *testing.T, c *redis.Client, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := c.Set(context.Background(), key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRedisLosesOnlyTheSitesKeys(t *testing.T) {
	h, c := redisSite(t, 3, cms.Env{"REDIS_PREFIX": "shop[1]*_", "CACHE_PREFIX": "cache_"})
	for i := range 2500 {
		set(t, c, fmt.Sprintf("shop[1]*_cache_k%d", i))
	}
	set(t, c, "shop1x_cache_a", "shop[1]*_session", "other", "shop[1]*_cache_cache_site_map_key_pages",
		"shop[1]*_cache_g@1")
	h.write("storage/cache_keys.json", `{"Botble\\Menu\\Models\\Menu":["g@1"]}`)

	if r, _ := h.run("cache.clear", `{"tags":["menus","sitemap"]}`); r.Keys != 2 || r.Failures != 0 {
		t.Errorf("tags: %+v", r)
	}
	dry, _ := h.run("cache.clear", `{"dryRun":true}`)
	r, _ := h.run("cache.clear", ``)
	if dry.Keys != 2500 || r.Keys != 2500 || r.Failures != 0 {
		t.Errorf("removed %d keys, the dry-run said %d: %+v", r.Keys, dry.Keys, r)
	}
	if left, err := c.Keys(context.Background(), "*").Result(); err != nil || len(left) != 3 {
		t.Errorf("left are %v (%v)", left, err)
	}
}

func TestRedisIsFlushedOnlyWhereItIsTheCachesOwn(t *testing.T) {
	h, c := redisSite(t, 4, cms.Env{"REDIS_PREFIX": "", "CACHE_PREFIX": ""})
	set(t, c, "a", "b")
	if r, _ := h.run("cache.clear", ``); r.Failures != 1 || !strings.Contains(r.NotRemoved[0], "no prefix") {
		t.Errorf("without a prefix: %+v", r)
	}
	if n := c.DBSize(context.Background()).Val(); n != 2 {
		t.Errorf("%d keys are left of 2", n)
	}
	h.Options.RedisIsOurs = true
	if r, _ := h.run("cache.clear", `{"dryRun":true}`); r.Keys != 2 || c.DBSize(context.Background()).Val() != 2 {
		t.Errorf("dry-run: %+v", r)
	}
	if r, _ := h.run("cache.clear", ``); r.Keys != 2 || c.DBSize(context.Background()).Val() != 0 {
		t.Errorf("flushing: %+v", r)
	}
}

func TestARedisThatIsAwayIsReportedWithoutItsPassword(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite,
		cms.Env{"CACHE_STORE": "redis", "REDIS_URL": "redis://:secret@127.0.0.1:1/0?dial_timeout=200ms&max_retries=-1"})
	h.write(viewsFolder+"/a.php", "x")
	r, _ := h.run("cache.clear", ``)
	if r.Failures != 1 || r.Files != 1 || strings.Contains(fmt.Sprint(r), "secret") {
		t.Errorf("%+v", r)
	}
}
