package cmsjobs_test

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// documents are all pages that people read.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "sdk/*/README.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			pages[path] = read(t, path)
		}
	}
	if len(pages) < 10 {
		t.Fatalf("only %d documents were found", len(pages))
	}
	return pages
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// Links between documents lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	for path, text := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target := found[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", path, target)
			}
		}
	}
}

// built is the real binary, made once for all tests.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cmsjobs-docs-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	binary := filepath.Join(dir, "cmsjobs")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/cmsjobs").CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building: %w\n%s", err, out)
	}
	return binary, nil
})

// builtIn is the folder of built, "" where no test has asked for it.
var builtIn string

// TestMain is also each stand-in that a documented block calls: a link to this program by another name.
func TestMain(m *testing.M) {
	if os.Getenv(standInProgram) != "" {
		os.Exit(standIn(filepath.Base(os.Args[0]), os.Args[1:]))
	}
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

func program(t *testing.T) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var (
	fence   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```")
	inline  = regexp.MustCompile("`(cmsjobs [^`]+)`")
	word    = regexp.MustCompile(`^[a-z][a-z:-]*$`)
	usage   = regexp.MustCompile(`\nUsage:\n  cmsjobs (.*)`)
	longing = regexp.MustCompile(`^--?[a-z][a-z-]*`)
)

// Every command that a document shows is one of the program's, with flags that
// it has.
func TestCommandsInDocumentsExist(t *testing.T) {
	binary, helps := program(t), map[string]string{}
	commands := 0
	for path, text := range documents(t) {
		if path == "CHANGELOG.md" {
			continue
		}
		for _, line := range commandLines(text) {
			commands++
			checkCommand(t, binary, helps, path, line)
		}
	}
	if commands < 40 {
		t.Errorf("only %d commands were found in the documents", commands)
	}
}

func commandLines(text string) (lines []string) {
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		if block[1] != "sh" {
			continue
		}
		for line := range strings.Lines(block[2]) {
			if line, _, _ = strings.Cut(line, "  #"); strings.HasPrefix(line, "cmsjobs ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	for _, found := range inline.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		lines = append(lines, found[1])
	}
	return lines
}

func checkCommand(t *testing.T, binary string, helps map[string]string, path, line string) {
	t.Helper()
	var words, flags []string
	quoted := false
	fields := strings.Fields(line)[1:]
	for i := 0; i < len(fields); i++ {
		f := fields[i]
		wasQuoted := quoted
		if strings.Count(f, "'")%2 == 1 {
			quoted = !quoted
		}
		switch {
		case wasQuoted:
		case f == "--cms" || f == "--set" || f == "--dsn" || f == "-c" || f == "--config":
			i++ // its value
		case longing.MatchString(f):
			flags = append(flags, longing.FindString(f))
		case word.MatchString(f) && len(flags) == 0:
			words = append(words, f)
		}
	}
	key := strings.Join(words, " ")
	if _, known := helps[key]; !known {
		out, err := exec.Command(binary, append(slices.Clone(words), "--help")...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %q: %v\n%.200s", path, line, err, out)
		}
		helps[key] = string(out)
	}
	help := helps[key]
	// The help of a group, or of the whole program, means that the last argument was
	// not known, unless it is the group's own.
	if m := usage.FindStringSubmatch(help); strings.Contains(help, "\nAvailable Commands:\n") ||
		strings.HasPrefix(m[1], "[") {
		own := strings.Fields(m[1])
		if len(words) > 0 && (len(own) == 0 || strings.HasPrefix(own[0], "[") ||
			!slices.Contains(own, words[len(words)-1])) {
			t.Errorf("%s: %q is no command", path, line)
		}
	}
	for _, f := range flags {
		if !regexp.MustCompile(`[ ,]` + regexp.QuoteMeta(f) + `[ ,\n]`).MatchString(help) {
			t.Errorf("%s: %q: %s has no flag %s", path, line, key, f)
		}
	}
}

// Snippets of code are code: Go is parsed, PHP and JavaScript where their
// programs are there, JSON decoded.
func TestSnippetsAreCode(t *testing.T) {
	for path, text := range documents(t) {
		for i, block := range fence.FindAllStringSubmatch(text, -1) {
			if err := checkSnippet(block[1], block[2]); err != nil {
				t.Errorf("%s, block %d (%s): %v", path, i+1, block[1], err)
			}
		}
	}
}

func checkSnippet(language, code string) error {
	switch language {
	case "go":
		if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, 0); err == nil {
			return nil
		}
		_, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+code+"\n}", 0)
		return err
	case "json":
		var value any
		return json.Unmarshal([]byte(code), &value)
	case "yaml":
		var value any
		return yaml.Unmarshal([]byte(code), &value)
	case "sh":
		return syntax("sh", code, "-n")
	case "php":
		return syntax("php", "<?php\n"+strings.TrimPrefix(code, "<?php"), "-l")
	}
	return nil
}

// syntax asks a language's own program, where it is installed.
func syntax(interpreter, code, option string) error {
	if _, err := exec.LookPath(interpreter); err != nil {
		return nil
	}
	c := exec.Command(interpreter, option)
	c.Stdin = strings.NewReader(code)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// docs/jobs.md has a row and a section for every type that the program runs.
func TestEveryTypeIsDocumented(t *testing.T) {
	out, err := exec.Command(program(t), "types", "--all", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var types struct {
		Items []struct {
			Name    string
			Max     int   `json:"max_attempts"`
			Timeout int64 `json:"timeout_ms"`
		}
	}
	if err := json.Unmarshal(out, &types); err != nil || len(types.Items) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	page := read(t, "docs/jobs.md")
	for _, k := range types.Items {
		limits := fmt.Sprintf(`%d attempts?, at most %s each`, k.Max, time.Duration(k.Timeout)*time.Millisecond)
		if !regexp.MustCompile(`(?m)^### Payload of ` + regexp.QuoteMeta(k.Name) + `\n\n.* ` + limits).MatchString(page) {
			t.Errorf("docs/jobs.md has no payload of %s with %d attempts and %d ms: make golden writes it", k.Name, k.Max,
				k.Timeout)
		}
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s \| (\d+) \| [^|]+ \| (\S+) \|`, regexp.QuoteMeta(k.Name)))
		if found := row.FindStringSubmatch(page); found != nil && (found[1] != strconv.Itoa(k.Max) ||
			found[2] != (time.Duration(k.Timeout)*time.Millisecond).String()) {
			t.Errorf("docs/jobs.md says of %s %q, not %d attempts and %d ms", k.Name, found[0], k.Max, k.Timeout)
		}
	}
}

// The tests that docs/reliability.md names exist.
func TestPromisesNameTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example)\w+)\(`)
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, found := range declared.FindAllStringSubmatch(read(t, path), -1) {
				tests[found[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range documents(t) {
		for _, found := range regexp.MustCompile("`((?:Test|Example_)\\w+)`").FindAllStringSubmatch(text, -1) {
			if !tests[found[1]] {
				t.Errorf("%s names %s, which does not exist", path, found[1])
			}
		}
	}
}

// The packages and files that docs/architecture.md names exist.
func TestArchitectureNamesWhatExists(t *testing.T) {
	named := 0
	for _, found := range regexp.MustCompile(
		"`((?:cmd|internal|config|templates|sdk|checks|docs|bench)(?:/[\\w.]+)+)`").FindAllStringSubmatch(
		read(t, "docs/architecture.md"), -1) {
		named++
		if strings.Contains(found[1], "NAME") {
			continue
		}
		if _, err := os.Stat(found[1]); err != nil {
			t.Errorf("docs/architecture.md names %s, which does not exist", found[1])
		}
	}
	if named < 10 {
		t.Errorf("only %d names were found", named)
	}
}
