package laravel

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Written by Str::slug of Laravel 8.83.29, 9.52.22, 10.50.3, 11.56.0, 12.67.0
// and 13.26.1, each with portable-ascii 2.0.3 and 2.1.1. All agree on all of them.
var slugs = []struct{ name, underscored, dashed string }{
	{"Laravel", "laravel", "laravel"},
	{"Báo Điện tử", "bao_dien_tu", "bao-dien-tu"},
	{"বাংলা সংবাদ", "bangla_sngbad", "bangla-sngbad"},
	{"প্রথম আলো", "prthm_alo", "prthm-alo"},
	{"📰 News", "news", "news"},
	{"📰", "", ""},
	{"", "", ""},
	{"中文", "", ""},
	{"Ελληνικά", "ellinika", "ellinika"},
	{"Привет мир", "privet_mir", "privet-mir"},
	{"Größe & Co", "grosse_co", "grosse-co"},
	{"a@b", "a_at_b", "a-at-b"},
	{"क्षत्रिय", "kashhataraya", "kashhataraya"},
	{"½ x²", "x2", "x2"},
	{"My_Shop", "my_shop", "my-shop"},
	{"x—y", "x_y", "x-y"},
	{"İstanbul Iğdır", "istanbul_igdir", "istanbul-igdir"},
}

func TestSlugIsAsRecordedFromLaravel8To13(t *testing.T) {
	for _, s := range slugs {
		for _, leftFirst := range []bool{false, true} {
			if got := slug(s.name, "_", leftFirst); got != s.underscored {
				t.Errorf("slug(%q, _, %t) = %q, Laravel has %q", s.name, leftFirst, got, s.underscored)
			}
			if got := slug(s.name, "-", leftFirst); got != s.dashed {
				t.Errorf("slug(%q, -, %t) = %q, Laravel has %q", s.name, leftFirst, got, s.dashed)
			}
		}
	}
}

// overlapping are names on which the versions of portable-ascii differ, written
// by Str::slug of the same six versions of Laravel.
var overlapping = []struct{ name, upTo20, since21 string }{
	{"বাংলা এক্সপ্রেস", "bangla_ekspres", "bangla_xpres"},
	{"লক্ষ্মী", "lkshmee", "lkxmee"},
	{"বঙ্গীয়", "bngoeez", "bngiz"},
	{"ক্ষ্ণ ষ্ণ", "kshn_shn", "kxn_shn"},
	{"ကျွန်တော်", "kyauntaw", "kywaantaw"},
}

func TestSlugIsThatOfThePortableASCIIThatTheApplicationHas(t *testing.T) {
	const config = `<?php return ['prefix' => Str::slug(env('APP_NAME'), '_')];`
	for _, s := range overlapping {
		for source, want := range map[string]string{
			"public static function to_ascii(":            s.upTo20,
			"private static function to_ascii_replace(\n": s.since21,
		} {
			c := app(t, map[string]string{"APP_NAME": s.name}, map[string]string{
				"config/cache.php": config, asciiFile: "<?php class ASCII { " + source})
			if got, err := c.Value("cache", "prefix"); got != want {
				t.Errorf("%q with %q: %q (%v), Laravel has %q", s.name, source, got, err, want)
			}
		}
		c := app(t, map[string]string{"APP_NAME": s.name, "CACHE_DRIVER": "database"}, nil)
		if guesses := c.CacheStore().Prefixes; !slices.Contains(guesses, s.upTo20+"_cache_") ||
			!slices.Contains(guesses, s.since21+"_cache_") {
			t.Errorf("%q: without the configuration's files %q", s.name, guesses)
		}
	}
}

// Random names of the table's characters and of ASCII, beside the Laravel that
// is installed.
func TestSlugIsThatOfTheInstalledLaravel(t *testing.T) {
	const program = `require 'Illuminate/Support/autoload.php'; require_once 'voku/helper/autoload.php'; error_reporting(E_ALL & ~E_DEPRECATED);
		echo json_encode(array_map(fn ($n) => [Illuminate\Support\Str::slug($n, '_'), Illuminate\Support\Str::slug($n)], json_decode(stream_get_contents(STDIN))));`
	random := rand.New(rand.NewPCG(1, 2))
	var pieces []string
	for from := range replacements().to {
		pieces = append(pieces, from)
	}
	slices.Sort(pieces)
	for c := range rune(0x7f - 0x20) {
		pieces = append(pieces, string(c+0x20))
	}
	names := slices.Clone(pieces)
	for range 5000 {
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		names = append(names, b.String())
	}
	input, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("php", "-r", program)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		jobstest.Skip(t, "no Laravel here (packages php-cli, php-laravel-framework): %v", err)
	}
	var theirs [][2]string
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatalf("%v: %.200s", err, out)
	}
	wrong := 0
	for i, name := range names {
		if ours := [2]string{slug(name, "_", false), slug(name, "-", false)}; ours != theirs[i] {
			if wrong++; wrong < 10 {
				t.Errorf("%q: ours %q, Laravel's %q", name, ours, theirs[i])
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d names differ", wrong, len(names))
	}
}
