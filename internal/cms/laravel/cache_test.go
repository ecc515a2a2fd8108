package laravel

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// app writes an application's files and opens its configuration.
func app(t *testing.T, env map[string]string, files map[string]string) *Config {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Open(dir, env, "cache", "database")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// skeleton is what one version of laravel/laravel (for 13 the framework's own
// files) says about prefixes.
func skeleton(version, cache, database string) map[string]string {
	head := "<?php\n\nuse Illuminate\\Support\\Str;\n\nreturn [\n"
	return map[string]string{
		versionFile: "class Application {\n    const VERSION = '" + version + "';\n}",
		"config/cache.php": head + `    'default' => env('CACHE_DRIVER', 'file'), // a comment, with 'quotes'
    'stores' => ['redis' => ['driver' => 'redis', 'connection' => 'cache', 'lock_connection' => 'default'], 'database' => ['driver' => 'database',
        'table' => 'cache', 'connection' => null], 'file' => ['driver' => 'file', 'path' => storage_path('framework/cache/data')]],
    'prefix' => ` + cache + ",\n];\n",
		"config/database.php": head +
			`    'connections' => ['mysql' => ['options' => extension_loaded('pdo_mysql') ? array_filter([PDO::MYSQL_ATTR_SSL_CA => env('X')]) : []]],
    'redis' => [
        'client' => env('REDIS_CLIENT', 'phpredis'),
        'options' => ['cluster' => env('REDIS_CLUSTER', 'redis'), 'prefix' => ` + database + `],
        'cache' => ['url' => env('REDIS_URL'), 'host' => env('REDIS_HOST', '127.0.0.1'), 'database' => env('REDIS_CACHE_DB', '1')],
    ],
];
`,
	}
}

// recorded is what one version of Laravel really put before its keys.
type recorded struct {
	Framework, Skeleton string
	// Cache and Database are the expressions of the skeleton's prefixes.
	Cache, Database string
	// Prefixes are those by site name and store.
	Prefixes map[string]map[string]string
}

// prefixes were made as follows: the laravel/framework of the version named stored one
// entry with the config/cache.php and config/database.php of that laravel/laravel
// (for 13 the framework's own files), in Redis and in a table cache, by PHP 8.2
// with portable-ascii 2.1.1, for each APP_NAME. What stood before the entry's
// key is the prefix. Its own cache:clear left nothing. The file store has no
// prefix: the entry was in the same file each time.
func prefixes(t testing.TB) (all []recorded) {
	t.Helper()
	text, err := os.ReadFile("testdata/prefixes.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) < 8 {
		t.Fatalf("%d recorded versions: %v", len(all), err)
	}
	return all
}

func TestPrefixesAreThoseThatEachLaravelWrote(t *testing.T) {
	for _, r := range prefixes(t) {
		if len(r.Prefixes) < 7 {
			t.Errorf("%s: %d names", r.Framework, len(r.Prefixes))
		}
		for name, stores := range r.Prefixes {
			for store, want := range stores {
				env := map[string]string{"APP_NAME": name, "CACHE_DRIVER": store}
				files := skeleton(r.Framework, "env('CACHE_PREFIX', "+r.Cache+")", "env('REDIS_PREFIX', "+r.Database+")")
				s := app(t, env, files).CacheStore()
				if !slices.Equal(s.Prefixes, []string{want}) || !s.Known || s.Driver != store {
					t.Errorf("Laravel %s, skeleton %s, %q, %s: %+v, Laravel wrote %q", r.Framework, r.Skeleton, name,
						store, s, want)
				}
				// without the files the guesses have it too
				if s = app(t, env, nil).CacheStore(); s.Known || !slices.Contains(s.Prefixes, want) {
					t.Errorf("Laravel %s, %q, %s: guessed %q, Laravel wrote %q", r.Framework, name, store, s.Prefixes,
						want)
				}
			}
		}
	}
}

func TestWhatTheConfigurationSaysCounts(t *testing.T) {
	php := func(s string) map[string]string {
		return map[string]string{versionFile: "const VERSION = '11.0.0';", "config/cache.php": "<?php return " + s +
			";"}
	}
	outer := map[string]string{"REDIS_PREFIX": ""}
	for name, c := range map[string]struct {
		files map[string]string
		env   map[string]string
		want  []string
	}{
		"a literal": {php(`['default' => 'redis', 'prefix' => 'shop:']`), outer, []string{"shop:"}},
		"the store's own": {
			php(`['default' => 'r2', 'stores' => ['r2' => ['driver' => 'redis', 'prefix' => 'two_']], 'prefix' => 'x']`), outer, []string{"two_"}},
		"the old array": {php(`array('default' => 'redis', 'prefix' => "a\tb" . 'c')`), outer,
			[]string{"a\tbc"}},
		"a condition": {
			php(`['default' => env('NO', 'redis'), 'prefix' => env('STAGE') === 'live' ? 'live_' : (env('P') ?: 'dev_')]`), outer, []string{"dev_"}},
		"null": {php(`['default' => 'redis', 'prefix' => null]`), outer, []string{""}},
		"functions around it": {
			php(`['when' => fn () => 1, 'x' => new Foo(['a' => function () { return [1, 2]; }]), 'default' => 'redis', 'prefix' => strtolower('SHOP_')]`), outer, []string{"shop_"}},
		"a function we don't run": {php(`['default' => 'redis', 'prefix' => gethostname().'_']`), map[string]string{
			"REDIS_PREFIX": "", "APP_NAME": "X"}, []string{"x_cache_", "x-cache-", "x_cache"}},
		"config:cache": {
			map[string]string{versionFile: "const VERSION = '10.1.0';", cachedConfig: "<?php return array (\n  " +
				"'cache' => array ('default' => 'redis', 'prefix' => 'frozen', ),\n" +
				"  'database' => array ('redis' => array ('options' => array ('prefix' => 'f_', ), ), ), );"},
			map[string]string{"CACHE_PREFIX": "thawed"}, []string{"f_frozen:"}},
	} {
		s := app(t, c.env, c.files).CacheStore()
		if !slices.Equal(s.Prefixes, c.want) || s.Driver != "redis" {
			t.Errorf("%s: %+v, want %q", name, s, c.want)
		}
	}
}

func TestWithoutFilesTheGuessesAreThoseOfAllVersions(t *testing.T) {
	c, err := Open("", map[string]string{"CACHE_DRIVER": "redis", "APP_NAME": "A B"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a_b_database_a_b_cache_:", "a_b_database_a_b_cache_", "a_b_database_a-b-cache-:",
		"a_b_database_a-b-cache-", "a_b_database_a_b_cache:",
		"a-b-database-a_b_cache_:", "a-b-database-a_b_cache_", "a-b-database-a-b-cache-:", "a-b-database-a-b-cache-",
		"a-b-database-a_b_cache:"}
	if s := c.CacheStore(); s.Known || !slices.Equal(s.Prefixes, want) {
		t.Errorf("%+v", s)
	}
}

func FuzzConfigFile(f *testing.F) {
	for _, r := range prefixes(f) {
		files := skeleton(r.Framework, "env('CACHE_PREFIX', "+r.Cache+")", "env('REDIS_PREFIX', "+r.Database+")")
		f.Add(files["config/cache.php"])
		f.Add(files["config/database.php"])
	}
	f.Add(`<?php return ['a' => [[[[(("x".'y')`)
	f.Fuzz(func(t *testing.T, source string) {
		n, err := parse(source)
		if err != nil {
			return
		}
		c := &Config{env: map[string]string{}, files: map[string]node{"cache": n, "database": n}}
		if s := c.CacheStore(); s.Driver != "file" && len(s.Prefixes) == 0 {
			t.Errorf("no prefix at all: %+v", s)
		}
	})
}
