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

// Written by Laravel 8.83.26, 10.48.29 and 13.31.0 (Debian's packages), which
// agree on all of them.
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

func TestSlugIsAsRecordedFromLaravel8And10And13(t *testing.T) {
	for _, s := range slugs {
		if got := Slug(s.name, "_"); got != s.underscored {
			t.Errorf("Slug(%q, _) = %q, Laravel has %q", s.name, got, s.underscored)
		}
		if got := Slug(s.name, "-"); got != s.dashed {
			t.Errorf("Slug(%q, -) = %q, Laravel has %q", s.name, got, s.dashed)
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
	for from := range replacements() {
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
		if ours := [2]string{Slug(name, "_"), Slug(name, "-")}; ours != theirs[i] {
			if wrong++; wrong < 10 {
				t.Errorf("%q: ours %q, Laravel's %q", name, ours, theirs[i])
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d names differ", wrong, len(names))
	}
}
