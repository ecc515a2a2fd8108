package web_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
	"github.com/cmsjobs/cmsjobs/templates"
)

func texts(t *testing.T) *locale.Catalog {
	t.Helper()
	c, err := web.Texts(feature.All(feature.Ports{}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var (
	verbs  = regexp.MustCompile(`%[0-9.]*[a-z%]`)
	braces = regexp.MustCompile(`\{[^}]*\}`)
	// counted is a number before a noun that looks like a plural.
	counted = regexp.MustCompile(`%[ds] (?:[a-z]+ )?[a-z]{2,}s\b`)
)

func TestEveryTextIsThereInEachLanguage(t *testing.T) {
	c := texts(t)
	en := c.Pages("en")
	for _, language := range locale.Languages()[1:] {
		other := c.Pages(language.Code)
		for key, text := range en {
			if other[key] == "" || text == "" {
				t.Errorf("%s: %q in English, %q in %s", key, text, other[key], language.Name)
			}
			if a, b := verbs.FindAllString(text, -1), verbs.FindAllString(other[key], -1); strings.Join(a,
				" ") != strings.Join(b, " ") {
				t.Errorf("%s: %v in English, %v in %s", key, a, b, language.Name)
			}
		}
		for key := range other {
			if _, there := en[key]; !there {
				t.Errorf("%s is in %s only", key, language.Name)
			}
		}
	}
}

// TestConditionsHaveOneText holds the pages' English names of conditions, and what
// to do, against those that doctor, alerts and notifications use; each links to a
// page that there is.
func TestConditionsHaveOneText(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	en := texts(t).Pages("en")
	for _, c := range conditions.List() {
		if got := en["condition."+c.Name]; got != c.Title {
			t.Errorf("pages say %q of %s, everything else %q", got, c.Name, c.Title)
		}
		if got, want := en["condition."+c.Name+".fix"], strings.ReplaceAll(c.Fix, "`", ""); got != want {
			t.Errorf("against %s pages advise %q, everything else %q", c.Name, got, want)
		}
		s.do("GET", c.Page, nil, basic("admin", "right")).want(t, 200)
	}
}

// TestPluralFormsAreThoseOfTheLanguage holds the forms against what a language
// has: English two, Vietnamese one.
func TestPluralFormsAreThoseOfTheLanguage(t *testing.T) {
	c := texts(t)
	forms := 0
	for key, text := range c.Pages("en") {
		for _, group := range braces.FindAllString(text, -1) {
			forms++
			if strings.Count(group, "|") != 1 {
				t.Errorf("%s has %s: English has two forms", key, group)
			}
		}
		if noun := counted.FindString(braces.ReplaceAllString(text, "")); noun != "" && !notPlural.MatchString(noun) {
			t.Errorf("%s says %q of one, too: write {one|many}", key, noun)
		}
		one := strings.Contains(display.Forms(text, []any{1, 1, 1, 1, 1}), "{")
		if one {
			t.Errorf("%s has a brace that is not closed", key)
		}
	}
	if forms < 30 {
		t.Errorf("only %d plural forms were found", forms)
	}
	for key, text := range c.Pages("vi") {
		if braces.MatchString(text) {
			t.Errorf("%s has plural forms: Vietnamese has none", key)
		}
	}
	for key, want := range map[string]string{"failed.sum": "1 failed job, 1 cause",
		"backups.contents": "1 table, 1 file", "overview.slots": "1 of 1 slot, 1 worker"} {
		args := []any{"1", "1"}
		if key == "overview.slots" {
			args = []any{1, 1, 1}
		}
		if got := c.In("en").Text(key, args...); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// notPlural are words that end like a plural and are none.
var notPlural = regexp.MustCompile(` (less|gets)$`)

// pageFiles are the templates of the core and of all features, by name.
func pageFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	read := func(folder fs.FS) {
		names, err := fs.Glob(folder, "*.html")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			raw, err := fs.ReadFile(folder, name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(raw)
		}
	}
	read(templates.Admin())
	for _, f := range feature.All(feature.Ports{}) {
		if f.Files != nil {
			read(f.Files)
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d templates were found", len(all))
	}
	return all
}

// goFiles is the code that makes texts for people, by path.
func goFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.go", "feature/*/*.go", "summary/*.go", "../ops/*.go",
		"../jobs/explain/explain.go"} {
		files, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.ToSlash(file)] = string(raw)
		}
	}
	return all
}

var (
	keyUse  = regexp.MustCompile(`\bt "([^"]+)"`)
	actUse  = regexp.MustCompile(`\.Act "[a-z]+" (?:"[^"]*"|\((?:[^()]|\([^()]*\))*\)) "([^"]+)"`)
	textual = regexp.MustCompile(`>([^<>{}]*[A-Za-z]{3,}[^<>{}]*)<`)
	action  = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	quoted  = regexp.MustCompile(`"([a-zA-Z]+(?:\.[a-zA-Z0-9_]+)*\.?)"`)
)

// TestNoTextIsUnused looks for each key in templates and code: as a whole, or as
// the beginning that a word is put behind ("status.").
func TestNoTextIsUnused(t *testing.T) {
	used := map[string]bool{}
	for _, sources := range []map[string]string{pageFiles(t), goFiles(t)} {
		for _, source := range sources {
			for _, m := range quoted.FindAllStringSubmatch(source, -1) {
				used[m[1]] = true
			}
		}
	}
	for _, f := range feature.All(feature.Ports{}) {
		used["nav."+f.Name] = true
		for _, entry := range f.Also {
			used["nav."+entry.Name] = true
		}
	}
	for name := range pageFiles(t) {
		used[strings.TrimSuffix(strings.TrimPrefix(name, "page_"), ".html")+".title"] = true
	}
	for key := range texts(t).Pages("en") {
		known := used[key]
		for i := range key {
			known = known || key[i] == '.' && used[key[:i+1]] && !strings.HasPrefix(key, "nav.")
		}
		if !known {
			t.Errorf("nothing uses the text %s", key)
		}
	}
}

var sentences = regexp.MustCompile(
	"(?s)\\b(?:httpError|fieldError|Refuse|RefuseField|reason|conflict|invalid|notFound)\\([^\"`\n]*(?:\"[\\w.]+\", " +
		"[\\w.{}]+, )?(?:\"[\\w.]*\", )?(\"(?:[^\"\\\\]|\\\\.)+\"|`[^`]+`)")

// A call may have its arguments, and a sentence its words, in several lines.
var (
	joined  = regexp.MustCompile(`"\s*\+\s*"`)
	oneLine = regexp.MustCompile(`([,(])\n\s*`)
)

// TestRefusalsOfPagesSpeakVietnamese reads the code for the sentences that it
// makes, and holds the Vietnamese ones against them. Those of the API are among them:
// forms of pages call the same functions.
func TestRefusalsOfPagesSpeakVietnamese(t *testing.T) {
	said, vietnamese := map[string]bool{}, texts(t).Errors("vi")
	for file, code := range goFiles(t) {
		code = oneLine.ReplaceAllString(joined.ReplaceAllString(code, ""), "$1 ")
		for _, m := range sentences.FindAllStringSubmatch(code, -1) {
			form, err := strconv.Unquote(m[1])
			if err != nil {
				t.Fatal(err)
			}
			if said[form] = true; vietnamese[form] == "" && strings.HasSuffix(form, ".") && form != "%s." {
				t.Errorf("%s says %q, which has no Vietnamese in vi.yaml", file, form)
			}
		}
	}
	if len(said) < 70 {
		t.Errorf("only %d sentences were found", len(said))
	}
	for _, form := range summaryForms(t) {
		said[form] = true
	}
	for form, other := range vietnamese {
		if a, b := verbs.FindAllString(form, -1), verbs.FindAllString(other, -1); !strings.Contains(other, "%[") &&
			strings.Join(a, " ") != strings.Join(b, " ") {
			t.Errorf("%q has %v in English, %v in Vietnamese", form, a, b)
		}
		if strings.HasSuffix(form, ".") && !said[form] {
			t.Errorf("nothing says %q any more", form)
		}
	}
}

// phrases are the forms of errors that can be translated.
var phrases = regexp.MustCompile("phrase\\.Errorf\\(\\s*(\"(?:[^\"\\\\]|\\\\.)+\"|`[^`]+`)")

// TestWhatLowerLayersRefuseHasVietnamese holds the Vietnamese texts against the
// forms of all errors of package phrase.
func TestWhatLowerLayersRefuseHasVietnamese(t *testing.T) {
	vietnamese, forms := texts(t).Errors("vi"), 0
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		code := regexp.MustCompile("(?:\"\\s*\\+\\s*\")|(?:`\\s*\\+\\s*`)").ReplaceAllString(string(raw), "")
		for _, m := range phrases.FindAllStringSubmatch(code, -1) {
			forms++
			form, err := strconv.Unquote(m[1])
			if err != nil {
				return err
			}
			form = strings.ReplaceAll(form, "%w", "%s")
			if vietnamese[form] == "" {
				t.Errorf("%s says %q, which has no Vietnamese", file, form)
			}
		}
		return nil
	})
	said := map[string]bool{}
	for _, form := range summaryForms(t) {
		if said[form] = true; vietnamese[form] == "" {
			t.Errorf("a summary says %q, which has no Vietnamese", form)
		}
	}
	if len(said) < 80 {
		t.Errorf("only %d texts of summaries were found", len(said))
	}
	if err != nil || forms < 90 {
		t.Errorf("only %d forms were found: %v", forms, err)
	}
}

var (
	summaries = regexp.MustCompile(`(?:\.Say\(|phrase\.Count\(&s, [^"]*?)("(?:[^"\\]|\\.)+")`)
	columns   = regexp.MustCompile(`phrase\.Columns\(([^)]*)\)`)
	literal   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// summaryForms are the sentences and the names of columns that results of jobs are said in.
func summaryForms(t *testing.T) (forms []string) {
	t.Helper()
	add := func(text string) {
		form, err := strconv.Unquote(text)
		if err != nil {
			t.Fatal(err)
		}
		forms = append(forms, form)
	}
	for _, folder := range []string{"../app", "../handlers", "../jobs", "feature"} {
		err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(file)
			code := oneLine.ReplaceAllString(joined.ReplaceAllString(string(raw), ""), "$1 ")
			for _, m := range summaries.FindAllStringSubmatch(code, -1) {
				add(m[1])
			}
			for _, m := range columns.FindAllStringSubmatch(code, -1) {
				for _, name := range literal.FindAllString(m[1], -1) {
					add(name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return forms
}

// TestTemplatesHaveNoTextOfTheirOwn looks at each key that a template names,
// and for words that stand in it outside of the catalog.
func TestTemplatesHaveNoTextOfTheirOwn(t *testing.T) {
	known := texts(t).Pages("en")
	uses := 0
	for name, source := range pageFiles(t) {
		for i, line := range strings.Split(source, "\n") {
			if len(line) > 160 {
				t.Errorf("%s:%d has %d characters: one element a line", name, i+1, len(line))
			}
		}
		for _, use := range append(keyUse.FindAllStringSubmatch(source, -1),
			actUse.FindAllStringSubmatch(source, -1)...) {
			uses++
			if _, there := known[use[1]]; !there && !strings.HasSuffix(use[1], ".") {
				t.Errorf("%s uses the key %q, which has no text", name, use[1])
			}
		}
		for _, text := range textual.FindAllStringSubmatch(action.ReplaceAllString(source, ""), -1) {
			switch words := strings.TrimSpace(text[1]); {
			case words == "cmsjobs", words == "PHP", words == "API", words == "(JSON)", words == "UTC",
				strings.HasPrefix(words, "cmsjobs "), strings.HasSuffix(words, "· cmsjobs"), words == "true",
				words == "false",
				// names of keys, and places where to read on
				words == "Ctrl K", words == "Enter", words == "Esc", words == "/api/docs", words == "/docs":
			default:
				t.Errorf("%s has the separate text %q", name, words)
			}
		}
	}
	if uses < 250 {
		t.Errorf("only %d keys were found in templates: the search is wrong", uses)
	}
}
