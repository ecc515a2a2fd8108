package web_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/templates"
)

var verbs = regexp.MustCompile(`%[0-9.]*[a-z%]`)

func TestBothLanguagesSayTheSame(t *testing.T) {
	en, vi := web.Catalogues["en"], web.Catalogues["vi"]
	for key, text := range en {
		other, there := vi[key]
		if !there || other == "" || text == "" {
			t.Errorf("%s: %q and %q", key, text, other)
		}
		if a, b := verbs.FindAllString(text, -1), verbs.FindAllString(other, -1); strings.Join(a, " ") != strings.Join(b, " ") {
			t.Errorf("%s: %v in English, %v in Vietnamese", key, a, b)
		}
	}
	for key := range vi {
		if _, there := en[key]; !there {
			t.Errorf("%s is in Vietnamese only", key)
		}
	}
}

var (
	keyUse  = regexp.MustCompile(`\bt "([^"]+)"`)
	actUse  = regexp.MustCompile(`\.Act "[a-z]+" (?:"[^"]*"|\((?:[^()]|\([^()]*\))*\)) "([^"]+)"`)
	textual = regexp.MustCompile(`>([^<>{}]*[A-Za-z]{3,}[^<>{}]*)<`)
	action  = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
)

var sentences = regexp.MustCompile("(?s)\\b(?:httpError|fieldError|reason|conflict|invalid)\\([^\"`\n]*(?:\"[\\w.]+\", [\\w.{}]+, )?(?:\"[\\w.]*\", )?(\"(?:[^\"\\\\]|\\\\.)+\"|`[^`]+`)")

// TestRefusalsOfPagesSpeakVietnamese reads the code for the sentences that it
// makes, and holds the Vietnamese ones against them.
func TestRefusalsOfPagesSpeakVietnamese(t *testing.T) {
	said := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob(filepath.Join("..", "ops", "*.go"))
	if err != nil || len(shared) < 5 {
		t.Fatal(shared, err)
	}
	for _, file := range slices.Concat(files, shared, []string{filepath.Join("..", "jobs", "explain", "explain.go")}) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		onPages := strings.HasPrefix(file, "page") || strings.Contains(file, "ops") || strings.HasSuffix(file, "explain.go")
		for _, m := range sentences.FindAllSubmatch(raw, -1) {
			form, err := strconv.Unquote(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if said[form] = true; onPages && web.RefusalsVI[form] == "" && form != "%s" {
				t.Errorf("%s says %q, which has no Vietnamese in words_refusals_vi.go", file, form)
			}
		}
	}
	if len(said) < 70 {
		t.Errorf("only %d sentences were found", len(said))
	}
	for form, other := range web.RefusalsVI {
		if a, b := verbs.FindAllString(form, -1), verbs.FindAllString(other, -1); strings.Join(a, " ") != strings.Join(b, " ") {
			t.Errorf("%q has %v in English, %v in Vietnamese", form, a, b)
		}
		if strings.HasSuffix(form, ".") && !said[form] {
			t.Errorf("nothing says %q any more", form)
		}
	}
}

// TestTemplatesHaveNoTextOfTheirOwn looks at each key that a template names,
// and for words that stand in it outside of the catalogue.
func TestTemplatesHaveNoTextOfTheirOwn(t *testing.T) {
	names, err := fs.Glob(templates.Admin(), "*.html")
	if err != nil || len(names) < 20 {
		t.Fatalf("%v %v", names, err)
	}
	uses := 0
	for _, name := range names {
		raw, err := fs.ReadFile(templates.Admin(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range append(keyUse.FindAllStringSubmatch(string(raw), -1), actUse.FindAllStringSubmatch(string(raw), -1)...) {
			uses++
			if _, known := web.Catalogues["en"][use[1]]; !known {
				t.Errorf("%s uses the key %q, which has no text", name, use[1])
			}
		}
		plain := action.ReplaceAllString(string(raw), "")
		for _, text := range textual.FindAllStringSubmatch(plain, -1) {
			switch words := strings.TrimSpace(text[1]); {
			case words == "cmsjobs", words == "PHP", words == "API", words == "(JSON)", words == "UTC", strings.HasPrefix(words, "cmsjobs "), strings.HasSuffix(words, "· cmsjobs"), words == "true", words == "false":
			default:
				t.Errorf("%s has the text %q of its own", name, words)
			}
		}
	}
	if uses < 250 {
		t.Errorf("only %d keys were found in templates: the search is wrong", uses)
	}
}
