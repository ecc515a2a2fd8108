package cmsjobs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/cmsjobs/cmsjobs"

// source is one Go file of the module.
type source struct {
	path string // "internal/jobs/kind.go"
	*ast.File
}

func (s source) dir() string { return path.Dir(s.path) }
func (s source) test() bool {
	return strings.HasSuffix(s.path, "_test.go") || slices.Contains([]string{"internal/jobs/jobstest",
		"internal/jobs/tables/tablestest", "internal/storage/storagetest", "internal/handlers/mail/smtptest"}, s.dir())
}

// sources parses every Go file of the module.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" ||
			d.Name() == "node_modules" || d.Name() == "vendor") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(files, p, nil, parser.SkipObjectResolution|parser.ParseComments)
		all = append(all, source{filepath.ToSlash(p), f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d files were found: the test looks in the wrong place", len(all))
	}
	return all
}

// rule says what the packages below one folder may import of the module.
type rule struct {
	below string
	// may lists folders of the module; "self" is the package's own subtree.
	may []string
	// std allows the standard library only.
	std bool
}

var rules = []rule{
	{below: "internal/phrase", std: true},
	{below: "internal/jobs", std: true, may: []string{"internal/phrase", "internal/schema"}},
	{below: "internal/schema", std: true, may: []string{"internal/phrase"}},
	{below: "internal/schema/texts", may: []string{}},
	{below: "internal/jobs/listing", std: true},
	{below: "internal/jobs/tables", may: []string{"internal/jobs", "internal/database"}},
	{below: "internal/jobs/queue", may: []string{"internal/jobs", "internal/jobs/listing", "internal/jobs/tables",
		"internal/database", "internal/groupcommit"}},
	{below: "internal/jobs/history", may: []string{"internal/phrase", "internal/jobs", "internal/jobs/listing",
		"internal/jobs/tables", "internal/database", "internal/php/phpjob"}},
	{below: "internal/jobs/phprows", may: []string{"internal/jobs", "internal/jobs/tables", "internal/database",
		"internal/php", "internal/php/phpjob"}},
	{below: "internal/php", may: []string{"internal/jobs"}},
	{below: "internal/php/phpjob", std: true},
	{below: "internal/php/importer", std: true},
	{below: "internal/php/batches", may: []string{"internal/jobs", "internal/database"}},
	{below: "internal/database", may: []string{}},
	{below: "internal/groupcommit", std: true},
	{below: "internal/display", std: true},
	{below: "internal/testgolden", std: true},
	{below: "internal/jobs/schedule", may: []string{"internal/phrase", "internal/jobs"}},
	{below: "internal/jobs/wake", std: true},
	{below: "internal/feed", may: []string{"internal/jobs/tables", "internal/database"}},
	{below: "internal/jobs/breaker", may: []string{"internal/jobs", "internal/database"}},
	{below: "internal/jobs/explain", may: []string{"internal/jobs", "internal/display"}},
	{below: "internal/jobs/orders", may: []string{"internal/jobs"}},
	{below: "internal/jobs/announce", may: []string{"internal/jobs", "internal/schema", "internal/database"}},
	{below: "internal/remote", may: []string{"internal/jobs", "internal/jobs/announce"}},
	{below: "internal/jobs/jobstest", may: []string{"internal/jobs", "migrations"}},
	{below: "internal/cms", may: []string{"internal/database", "self"}},
	{below: "internal/storage", may: []string{}},
	{below: "internal/outbound", may: []string{}},
	{below: "internal/markup", may: []string{}},
	{below: "internal/conditions", may: []string{"internal/display", "internal/jobs", "internal/database"}},
	{below: "internal/trace", std: true},
	{below: "internal/handlers", may: []string{"internal/phrase", "internal/display", "internal/jobs",
		"internal/jobs/listing",
		"internal/cms", "internal/cms/laravel", "internal/storage", "internal/outbound", "internal/database",
		"internal/groupcommit", "internal/markup", "internal/redact", "templates", "self"}},
	{below: "internal/web", may: []string{"internal/phrase", "internal/display", "internal/answers", "internal/jobs",
		"internal/jobs/listing", "internal/jobs/explain", "internal/ops", "internal/redact", "internal/schema",
		"templates", "self"}},
	{below: "internal/web/access", may: []string{"internal/phrase", "internal/jobs", "internal/jobs/listing",
		"internal/redact",
		"internal/database", "self"}},
	// A feature knows the page framework and no other feature.
	{below: "internal/web/feature", may: []string{"internal/phrase", "internal/jobs", "internal/ops",
		"internal/redact", "internal/web",
		"internal/web/access", "internal/web/chart", "internal/web/saved", "internal/answers", "internal/jobs/explain", "internal/web/compat",
		"internal/web/format", "internal/web/locale", "internal/web/summary", "internal/schema",
		"internal/schema/texts",
		"internal/remote", "internal/manual", "docs", "self"}},
	{below: "internal/manual", may: []string{}},
	{below: "docs", may: []string{}},
	{below: "docs/screenshots", may: []string{"self"}},
	{below: "internal/ops", may: []string{"internal/jobs", "internal/jobs/explain", "internal/redact",
		"internal/php/phpjob", "internal/schema", "internal/schema/texts", "internal/timespan"}},
	{below: "internal/timespan", std: true},
	{below: "internal/answers", std: true},
	{below: "internal/redact", std: true},
	{below: "config", may: []string{"internal/cms", "internal/jobs", "internal/timespan"}},
	{below: "internal/memory", std: true},
	{below: "internal/processors", std: true},
	{below: "migrations", may: []string{}},
	{below: "internal/setup", may: []string{"deploy"}},
	{below: "templates", may: []string{}},
	{below: "client", std: true},
	{below: "worker", may: []string{"internal/jobs", "internal/jobs/announce", "internal/jobs/tables",
		"internal/jobs/queue",
		"internal/database", "internal/encryption"}},
}

// ruleFor is the most exact rule for a folder.
func ruleFor(dir string) (rule, bool) {
	best, found := rule{}, false
	for _, r := range rules {
		if (dir == r.below || strings.HasPrefix(dir, r.below+"/")) && len(r.below) >= len(best.below) {
			best, found = r, true
		}
	}
	return best, found
}

// self is the part of the tree that a package calls its own: the folder of a
// handler or of a feature of the pages, or the folder that the rule is about.
func self(dir string, r rule) string {
	if r.below == "internal/handlers" || r.below == "internal/web/feature" {
		own := strings.Count(r.below, "/") + 2
		parts := strings.SplitN(dir, "/", own+1)
		return strings.Join(parts[:min(own, len(parts))], "/")
	}
	return r.below
}

func allowed(dir, imported string, r rule) bool {
	inside, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		standard := !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
		return standard || !r.std
	}
	for _, may := range r.may {
		if may == "self" {
			own := self(dir, r)
			if inside == own || strings.HasPrefix(inside, own+"/") {
				return true
			}
		}
		if inside == may {
			return true
		}
	}
	return false
}

func TestWhoMayImportWhom(t *testing.T) {
	checked := map[string]bool{}
	for _, s := range sources(t) {
		r, there := ruleFor(s.dir())
		if s.test() && s.dir() != "internal/jobs/jobstest" || !there {
			continue
		}
		checked[r.below] = true
		for _, i := range s.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !allowed(s.dir(), imported, r) {
				t.Errorf("%s imports %s; %s may not", s.path, imported, r.below)
			}
		}
	}
	for _, must := range []string{"internal/jobs", "internal/jobs/tables", "internal/jobs/queue",
		"internal/jobs/history", "internal/cms", "internal/handlers", "config", "client"} {
		if !checked[must] {
			t.Errorf("no file below %s was checked", must)
		}
	}
}

func TestTheRulesCanFail(t *testing.T) {
	for _, c := range []struct{ dir, imported string }{
		{"internal/jobs", "github.com/jmoiron/sqlx"},
		{"internal/jobs", module + "/internal/cms"},
		{"internal/jobs/queue", module + "/internal/cms"},
		{"internal/jobs/queue", module + "/internal/jobs/history"},
		{"internal/jobs/history", module + "/internal/jobs/queue"},
		{"internal/jobs/tables", module + "/internal/jobs/queue"},
		{"internal/handlers/mail", module + "/internal/handlers/media"},
		{"internal/handlers/mail", module + "/internal/jobs/queue"},
		{"internal/handlers/mail", module + "/internal/jobs/history"},
		{"internal/handlers/mail", module + "/internal/jobs/tables"},
		{"internal/web", module + "/internal/jobs/queue"},
		{"internal/web", module + "/internal/jobs/history"},
		{"internal/handlers/mail", module + "/config"},
		{"internal/web", module + "/internal/handlers/mail"},
		{"config", module + "/internal/jobs/queue"},
		{"client", module + "/internal/jobs"},
		{"client", "github.com/google/uuid"},
	} {
		if r, _ := ruleFor(c.dir); allowed(c.dir, c.imported, r) {
			t.Errorf("%s may import %s", c.dir, c.imported)
		}
	}
	if r, _ := ruleFor("internal/handlers/media/picture"); !allowed("internal/handlers/media/picture",
		module+"/internal/handlers/media/exif", r) {
		t.Error("a handler may not import its own subpackage")
	}
}

// The client's users get what its go.mod requires.
func TestTheClientRequiresNoModule(t *testing.T) {
	text, err := os.ReadFile("client/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "module "+module+"/client\n") || strings.Contains(string(text), "require") {
		t.Errorf("client/go.mod:\n%s", text)
	}
}

// TestNobodyHidesInputs: clocks, the environment and start-up code come from
// where they can be seen.
func TestNobodyHidesInputs(t *testing.T) {
	forbidden := map[string]string{
		"os.Getenv": "config", "os.LookupEnv": "config", "os.Environ": "config", "time.Now": "internal/cli",
		"time.Since": "internal/cli", "time.Until": "internal/cli",
	}
	for _, s := range sources(t) {
		// measuring programs are no part of the service
		if s.test() || s.Name.Name == "main" && s.dir() != "cmd/cmsjobs" {
			continue
		}
		for _, d := range s.Decls {
			if f, isFunc := d.(*ast.FuncDecl); isFunc && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init(): do it where it can be seen", s.path)
			}
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			if !isCall {
				return true
			}
			selector, isSelector := call.Fun.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			if strings.HasSuffix(selector.Sel.Name, "Deadline") {
				return false // a connection's deadline is by the kernel's clock
			}
			if pkg, isIdent := selector.X.(*ast.Ident); isIdent {
				name := pkg.Name + "." + selector.Sel.Name
				if where, named := forbidden[name]; named && s.dir() != where {
					t.Errorf("%s calls %s, which only %s may: pass it in", s.path, name, where)
				}
			}
			return true
		})
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	var dirs, said []string
	for _, s := range sources(t) {
		if s.dir() == "." || strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		if !slices.Contains(dirs, s.dir()) {
			dirs = append(dirs, s.dir())
		}
		if path.Base(s.path) == "doc.go" && s.Doc.Text() != "" {
			said = append(said, s.dir())
		}
	}
	for _, dir := range dirs {
		if !slices.Contains(said, dir) {
			t.Errorf("%s has no doc.go that says what the package is", dir)
		}
	}
}
