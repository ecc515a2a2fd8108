package cmsjobs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// docBlock is one fenced block of a document.
type docBlock struct {
	page           string
	line           int // of its fence
	language, text string
}

func (b docBlock) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var anyFence = regexp.MustCompile("(?ms)^( *)```([^\n]*)\n(.*?)^ *```$")

// blocks are all fenced blocks of all documents, indented ones too.
func blocks(t *testing.T) (all []docBlock) {
	t.Helper()
	pages := documents(t)
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		text := pages[page]
		for _, m := range anyFence.FindAllStringSubmatchIndex(text, -1) {
			part := func(i int) string { return text[m[2*i]:m[2*i+1]] }
			all = append(all, docBlock{page, 1 + strings.Count(text[:m[0]], "\n"), part(2),
				regexp.MustCompile("(?m)^"+part(1)).ReplaceAllString(part(3), "")})
		}
	}
	return all
}

// elsewhere are the blocks that another test carries out as they stand: by page and language the
// test, its file and what in that file shows that it reads the page.
var elsewhere = map[string]struct{ test, file, reads string }{
	"docs/architecture.md go":   {"TestRecipes", "recipe_test.go", "docs/architecture.md"},
	"docs/architecture.md html": {"TestRecipes", "recipe_test.go", "docs/architecture.md"},
	"docs/architecture.md diff": {"TestRecipes", "recipe_test.go", "docs/architecture.md"},
	"docs/enqueue.md sql": {"TestTheSameJobFromEverywhere", "internal/cli/service_enqueue_test.go",
		"enqueue.md"},
	"docs/enqueue.md php": {"TestTheSameJobFromEverywhere", "internal/cli/service_enqueue_test.go",
		"enqueue.md"},
	"docs/enqueue.md ts": {"TestTheSameJobFromEverywhere", "internal/cli/service_enqueue_test.go",
		"enqueue.md"},
	"docs/enqueue.md sh": {"TestTheSameJobFromEverywhere", "internal/cli/service_enqueue_test.go",
		"enqueue.md"},
	"docs/install.md php": {"testTheDocumentedPHPBesideAPHPWorker", "internal/jobs/laravel_test.go",
		"docs/install.md"},
	"docs/analytics.md php": {"TestTheServerTellsOfAVisit", "internal/cli/service_collect_test.go",
		"analytics.md"},
	"docs/operating.md sql": {"TestLeastRights", "rights_test.go", "docs/operating.md"},
	"docs/operating.md sh":  {"TestTheRestoreDrill", "drill_test.go", "docs/operating.md"},
	"docs/repository-format.md text": {"TestTheFormatIsAsDocumented",
		"internal/handlers/backup/repository/documented_test.go", "repository-format.md"},
	"docs/repository-format.md sh": {"TestTheFormatIsAsDocumented",
		"internal/handlers/backup/repository/documented_test.go", "repository-format.md"},
}

// languages are the ways to try a block; each says which way it was and what is wrong.
func languages() map[string]func(t *testing.T, b docBlock) (way string, err error) {
	return map[string]func(*testing.T, docBlock) (string, error){
		"sh": runShell, "yaml": checkYAML, "sql": runSQL, "php": runPHP, "ts": runTypeScript, "go": vetGo,
		"json": checkJSON, "html": fetchHTML, "ini": readINI, "vcl": compileVCL, "nginx": readNginx,
		"mermaid": checkDiagram, "js": runWorker, "text": checkPicture,
	}
}

// Every fenced block of every document is tried, and none is passed over: run as it stands where that
// can be, with stand-ins for the programs of a host (systemctl, docker, sudo …) that check what they
// are asked; or read by the program that it is for. The log says which way each was tried.
func TestEveryBlockIsTried(t *testing.T) {
	all, used, ways := blocks(t), map[string]bool{}, make([]string, 0, 100)
	for _, b := range all {
		key := b.page + " " + b.language
		other, there := elsewhere[key]
		way := "left out by -run"
		switch try := languages()[b.language]; {
		case there:
			used[key], way = true, "run by "+other.test
			if text := read(t, other.file); !strings.Contains(text, "func "+other.test+"(") ||
				!strings.Contains(text, other.reads) {
				t.Errorf("%s is to be tried by %s of %s, which does not read it", b, other.test, other.file)
			}
		case try == nil:
			t.Errorf("%s: no way to try a block of the language %q: name one, or teach this test", b, b.language)
		default:
			t.Run(strings.ReplaceAll(b.String(), "/", "_"), func(t *testing.T) {
				way = "not tried: skipped here"
				var err error
				if way, err = try(t, b); err != nil {
					way = "failed"
					t.Errorf("%s\n%v", b.text, err)
				}
			})
		}
		ways = append(ways, fmt.Sprintf("%s\t%s\t%s", b, b.language, way))
	}
	for key := range elsewhere {
		if !used[key] {
			t.Errorf("elsewhere names %q, which no document has", key)
		}
	}
	logTable(t, ways)
	if len(all) < 70 {
		t.Errorf("only %d blocks were found", len(all))
	}
}

func logTable(t *testing.T, rows []string) {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 1, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	w.Flush() // a strings.Builder takes everything
	t.Logf("%d were tried:\n%s", len(rows), text.String())
}

// Every command that a sentence names is run: with its arguments, or, where the sentence names only the
// command and it needs some, its help.
func TestEveryNamedCommandIsRun(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "")
	var ways, wrong []string
	pages := documents(t)
	pages["config/config.example.yaml"] = strings.NewReplacer("`", "").Replace(read(t, "config/config.example.yaml"))
	seen := map[string]bool{}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		if page == "CHANGELOG.md" {
			continue
		}
		for _, found := range inline.FindAllStringSubmatch(anyFence.ReplaceAllString(pages[page], ""), -1) {
			command := strings.Join(strings.Fields(found[1]), " ")
			if seen[command] {
				continue
			}
			seen[command] = true
			way, out, err := s.command(command)
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %v\n%s", page, command, err, out))
			}
			ways = append(ways, fmt.Sprintf("%s\t%s\t%s", page, command, way))
		}
	}
	logTable(t, ways)
	for _, w := range wrong {
		t.Error(w) // behind the long table, where the end of a log shows it
	}
	for command := range honestAnswers {
		if !seen[command] {
			t.Errorf("no document names %q", command)
		}
	}
	if len(ways) < 60 {
		t.Errorf("only %d commands were found", len(ways))
	}
}

// A block that is wrong is seen: in each language one.
func TestAWrongBlockIsSeen(t *testing.T) {
	for language, text := range map[string]string{
		"sh":   "cmsjobs --cms . doctor\ncmsjobs --cms . sitemap generate --forse\n",
		"yaml": "sitemap: {target: attic}\n",
		"go":   "w, err := worker.New(ctx, db, \"mysql\", worker.Options{Slot: 4})\n",
	} {
		page := filepath.Join(t.TempDir(), "wrong.md")
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := languages()[language](t, docBlock{page, 1, language, text}); err == nil {
			t.Errorf("a block of %s that is wrong passes:\n%s", language, text)
		}
	}
}
