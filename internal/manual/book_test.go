package manual_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cmsjobs/cmsjobs/docs"
	"github.com/cmsjobs/cmsjobs/internal/manual"
)

func read(t *testing.T, pages map[string]string) *manual.Book {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range pages {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	book, err := manual.Read(files, "/docs")
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// TestADocumentBecomesAChapter has one of each thing that the documents use.
func TestADocumentBecomesAChapter(t *testing.T) {
	book := read(t, map[string]string{"a.md": "# The title\n\n![Picture](images/p.png)\n\n## What to do when …\n\n" +
		"[b](b.md#x), [record](adr/1.md), [file](../deploy/x.yml#y), [site](https://example.com/), [here](#down)\n\n" +
		"### It is `down`\n\n<b onclick=x()>raw</b> [evil](javascript:x())\n\n<!-- a note -->\n\n" +
		"| name | about |\n|---|--:|\n| `mail.host` | the host |\n| two words | no |\n\n```sh\necho '<b>'\n```\n",
		"b.md": "# B\n\n## X\n", "adr/1.md": "# One\n\n[a](../a.md#it-is-down) [2](2.md)\n", "adr/2.md": "# Two\n"})
	c := book.Chapter("a")
	if c == nil || c.Title != "The title" || len(c.Headings) != 2 || c.Headings[1] != (manual.Heading{Level: 3,
		ID: "it-is-down", Text: "It is down"}) {
		t.Fatalf("%+v", c)
	}
	html := string(c.HTML)
	for _, want := range []string{`src="/docs/images/p.png"`, `id="what-to-do-when-"`, `href="/docs/b#x"`,
		`href="/docs/adr/1"`, `file (deploy/x.yml)`, `href="https://example.com/" rel="noopener noreferrer"`,
		`href="#down"`, `<tr id="mail.host">`, `<pre class="code" tabindex="0"><code>echo '&lt;b&gt;'`,
		`role="group" aria-label="Table" tabindex="0"`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in\n%s", want, html)
		}
	}
	for _, never := range []string{"onclick", "javascript:", "<!--", "style=", `../deploy`} {
		if strings.Contains(html, never) {
			t.Errorf("%s in\n%s", never, html)
		}
	}
	if html := string(book.Chapter("adr/1").HTML); !strings.Contains(html, `href="/docs/a#it-is-down"`) ||
		!strings.Contains(html, `href="/docs/adr/2"`) {
		t.Error(html)
	}
	for place, there := range map[string]bool{"a": true, "a#it-is-down": true, "a#mail.host": true, "a#no": false,
		"no": false, "adr/2#two": true} {
		if book.Has(place) != there {
			t.Errorf("%s: %t", place, !there)
		}
	}
}

var inner = regexp.MustCompile(`href="(/docs/|#)([^"]*)"`)

// TestTheManualsLinksLeadSomewhere follows every link between the real documents, and
// looks for their pictures.
func TestTheManualsLinksLeadSomewhere(t *testing.T) {
	book, err := manual.Read(docs.Files, "/docs")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, name := range book.Names() {
		html := string(book.Chapter(name).HTML)
		for _, found := range inner.FindAllStringSubmatch(html, -1) {
			place := found[2]
			if found[1] == "#" {
				place = name + "#" + place
			}
			links++
			if !book.Has(place) {
				t.Errorf("%s links to %s, which the manual does not have", name, place)
			}
		}
		for _, found := range regexp.MustCompile(`src="/docs/([^"]*)"`).FindAllStringSubmatch(html, -1) {
			if _, err := docs.Files.Open(found[1]); err != nil {
				t.Errorf("%s shows %s: %v", name, found[1], err)
			}
		}
	}
	if links < 60 {
		t.Errorf("only %d links were found", links)
	}
}

func TestSearch(t *testing.T) {
	book := read(t, map[string]string{
		"settings.md": "# Settings\n\n## Mail\n\n| setting | meaning |\n|---|---|\n| `mail.host` | the server <b> |\n" +
			"| `mail.port` | its port |\n",
		"mail.md": "# Mail\n\nIntroduction.\n\n## Bounces\n\nA host that bounces. Straße.\n\n" +
			strings.Repeat("long text ", 100) + "with a bounce\n"})
	hits := book.Search("HOST")
	if len(hits) != 2 || hits[0].Place != "settings#mail.host" && hits[0].Place != "mail#bounces" {
		t.Fatalf("%+v", hits)
	}
	if hits = book.Search("mail.host"); len(hits) != 1 || hits[0].Place != "settings#mail.host" ||
		string(hits[0].Excerpt) != "<mark>mail.host</mark> · the server" {
		t.Errorf("%+v", hits)
	}
	if hits = book.Search("bounces mail"); len(hits) != 1 || hits[0].Place != "mail#bounces" {
		t.Errorf("%+v", hits)
	}
	if hits = book.Search("text bounce"); len(hits) != 1 || len(hits[0].Excerpt) > 700 ||
		!strings.Contains(string(hits[0].Excerpt), "<mark>text</mark>") {
		t.Errorf("%+v", hits)
	}
	for _, none := range []string{"", "  ", "host nowhere", "<b>", strings.Repeat("mail ", 10000) + "zzz"} {
		if hits = book.Search(none); none != strings.Repeat("mail ", 10000)+"zzz" && len(hits) != 0 {
			t.Errorf("%q: %+v", none, hits)
		}
	}
}

// TestSearchFindsRemedies asks the real manual as an operator at night does.
func TestSearchFindsRemedies(t *testing.T) {
	book, err := manual.Read(docs.Files, "/docs")
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"no_worker": "operating#no_worker", "http.admin_password": "settings#http.admin_password", "sign-in 429": "operating#sign-in-fails-with-429",
		"restore one post": "backup#one-post"} {
		hits := book.Search(query)
		if len(hits) == 0 || hits[0].Place != want {
			t.Errorf("%q: %+v", query, hits[:min(len(hits), 3)])
		}
		for _, h := range hits {
			if !book.Has(h.Place) {
				t.Errorf("%q finds %s, which is not there", query, h.Place)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		if _, err := manual.Read(docs.Files, "/docs"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	book, err := manual.Read(docs.Files, "/docs")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		book.Search("restore backup job of the")
	}
}
