package cmsjobs_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRecipes carries out recipes of docs/architecture.md on a copy of the
// source, by the page's own blocks, and uses what comes out.
func TestRecipes(t *testing.T) {
	t.Parallel()
	page, dir := read(t, "docs/architecture.md"), t.TempDir()
	copySource(t, dir)
	for heading, most := range map[string]int{
		"### A new job type: four files": 4,
		// docs/settings.md is written below, the use is no part of it
		"### A new setting: three files, and the line that uses it": 3,
		"### A column of the jobs list: four files":                 4,
		// the goldens are written below
		"### A new page: five files": 5,
	} {
		files, err := carryOut(dir, page, heading)
		if err != nil {
			t.Fatalf("%s: %v", heading, err)
		}
		if len(files) > most {
			t.Errorf("%s: it touches %s", heading, strings.Join(files, ", "))
		}
	}
	goIn(t, dir, "test", "-vet=off", "./internal/cli", "-update", "-run",
		"^(TestPayloadsAreDocumented|TestPayloadTypesOfTheSDKAreDocumented|TestEveryFieldHasATextInEachLanguage)$")
	goIn(t, dir, "test", "-vet=off", ".", "-update", "-run",
		"^(TestSettingsAreDocumented|TestEveryTypeIsDocumented|TestWhoMayImportWhom|TestEveryPackageSaysWhatItIs)$")
	goIn(t, dir, "test", "-vet=off", "./config")
	if err := os.WriteFile(filepath.Join(dir, "internal/web/recipe_test.go"), []byte(showsTheNewPage), 0o644); err != nil {
		t.Fatal(err)
	}
	goIn(t, dir, "test", "-vet=off", "./internal/web", "-update", "-run", "^(TestTheDocumentIsThatOfTheRoutes|"+
		"TestTheTableOfRights|TestEveryTextIsThereInEachLanguage|TestNoTextIsUnused|TestTheNewPage)$")
	goIn(t, dir, "build", "-o", "cmsjobs", "./cmd/cmsjobs")

	file := filepath.Join(dir, "cms.sqlite") // an empty file is an empty database
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmsjobs := func(arguments ...string) string {
		t.Helper()
		return run(t, dir, "./cmsjobs", append([]string{"--dsn", "sqlite:" + file}, arguments...)...)
	}
	cmsjobs("migrate", "up", "--create-jobs")
	cmsjobs("enqueue", "example.greet", `{"name":"Ada"}`)
	cmsjobs("work", "--stop-when-empty")
	if shown := cmsjobs("jobs", "show", "1"); !strings.Contains(shown, "Hello Ada") {
		t.Errorf("the job of the new type left no greeting:\n%s", shown)
	}
	if listed := cmsjobs("jobs", "list"); !strings.Contains(listed, "BYTES") {
		t.Errorf("the new column is not listed:\n%s", listed)
	}
	if shown := cmsjobs("--set", "log.source=true", "config", "show"); !regexp.MustCompile(`log\.source\s+true`).
		MatchString(shown) {
		t.Errorf("the new setting is not shown:\n%s", shown)
	}
}

// showsTheNewPage asks for the page of the recipe in both languages.
const showsTheNewPage = `package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

func TestTheNewPage(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	ask := func(scope access.Scope, lang string) (int, string) {
		r, w := httptest.NewRequest("GET", "/admin/types", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+s.tokens[scope])
		r.Header.Set("Accept-Language", lang)
		s.server.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for lang, want := range map[string][]string{
		"en": {"<title>Types of jobs", "This program runs 3 types of jobs.", ">Types</a>"},
		"vi": {"<title>Các loại công việc", "Chương trình này chạy 3 loại công việc.", ">Loại</a>"},
	} {
		status, page := ask(access.Admin, lang)
		for _, text := range append(want, "<code>mail.send</code>") {
			if status != 200 || !strings.Contains(page, text) {
				t.Errorf("in %s the page lacks %q (%d):\n%s", lang, text, status, page)
			}
		}
	}
	if status, _ := ask(access.Operate, "en"); status != 403 {
		t.Errorf("who is no administrator gets %d", status)
	}
}
`

func goIn(t *testing.T, dir string, arguments ...string) {
	t.Helper()
	run(t, dir, "go", arguments...)
}

func run(t *testing.T, dir, program string, arguments ...string) string {
	t.Helper()
	c := exec.Command(program, arguments...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// copySource copies what the module is built and tested from.
func copySource(t *testing.T, to string) {
	t.Helper()
	left := []string{"node_modules", "bin", "dist", "bench", "checks"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains(left, d.Name())):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	block   = regexp.MustCompile("(?ms)^( *)```(go|html|diff)\n(.*?)^ *```$")
	newFile = regexp.MustCompile(`^(?:// new file: (\S+)\n\n|<!-- new file: (\S+) -->\n)`)
	changed = regexp.MustCompile(`^--- (\S+)\n@@\n`)
)

// carryOut applies the blocks of one section to the source in dir and says which
// files they touch.
func carryOut(dir, page, heading string) (files []string, err error) {
	_, section, found := strings.Cut(page, heading+"\n")
	section, _, _ = strings.Cut(section, "\n### ")
	if !found {
		return nil, fmt.Errorf("docs/architecture.md has no such section")
	}
	for _, b := range block.FindAllStringSubmatch(section, -1) {
		text := regexp.MustCompile(`(?m)^`+b[1]).ReplaceAllString(b[3], "")
		names, carry := changed, change
		if b[2] != "diff" {
			names, carry = newFile, writeNew
		}
		m := names.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("a block does not say which file it is:\n%s", text)
		}
		file := strings.Join(m[1:], "") // one of them is empty
		if err := carry(filepath.Join(dir, file), strings.TrimPrefix(text, m[0])); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		files = append(files, file)
	}
	return files, nil
}

func writeNew(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// change applies the hunks of a diff without line numbers: the lines that a
// hunk keeps or removes stand in the file exactly once.
func change(name, hunks string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for hunk := range strings.SplitSeq(hunks, "@@\n") {
		var before, after bytes.Buffer
		for line := range strings.Lines(hunk) {
			switch {
			case line == "\n":
				before.WriteString(line)
				after.WriteString(line)
			case line[0] == '+':
				after.WriteString(line[1:])
			case line[0] == '-':
				before.WriteString(line[1:])
			default:
				before.WriteString(line[1:])
				after.WriteString(line[1:])
			}
		}
		if n := bytes.Count(content, before.Bytes()); n != 1 {
			return fmt.Errorf("it has these lines %d times:\n%s", n, before.String())
		}
		content = bytes.Replace(content, before.Bytes(), after.Bytes(), 1)
	}
	return os.WriteFile(name, content, 0o644)
}

// A recipe that no longer fits the source fails.
func TestARecipeThatDoesNotFitIsSeen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("one\ntwo\nsame\nsame\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	section := func(lines string) string { return "### X\n\n   ```diff\n" + lines + "   ```\n" }
	for lines, fits := range map[string]bool{
		"   --- a.go\n   @@\n    one\n   +new\n":    true,
		"   --- a.go\n   @@\n   -three\n   +new\n":  false,
		"   --- a.go\n   @@\n    same\n   +new\n":   false,
		"   --- gone.go\n   @@\n    one\n   +new\n": false,
		"   @@\n    one\n   +new\n":                 false,
	} {
		if _, err := carryOut(dir, section(lines), "### X"); (err == nil) != fits {
			t.Errorf("%q: %v", lines, err)
		}
	}
}
