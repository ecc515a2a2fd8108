package sitemap_test

import (
	"errors"
	"html"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// llms.txt names the newest content of each kind, and is not confused by what a
// title holds.
func TestLLMs(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	insert(t, site, "settings", 41, "theme-ripple-site_title", "Tom & Jerry's")
	insert(t, site, "settings", 42, "theme-ripple-seo_description", "Cats\nand [mice]")
	if _, err := site.DB.Exec(`UPDATE posts SET name = 'A [b](https://evil.example) <script>' WHERE id =
		(SELECT MIN(id) FROM posts)`); err != nil {
		t.Fatal(err)
	}
	h := handler(t, site, func(c *sitemap.Config) { c.Options.LLMs = true })
	write(t, h, true)
	golden(t, "llms.txt", read(t, site, "llms.txt"))
	listed := regexp.MustCompile(`(?m)[^\\]\]\((https://[^)]*)\)$`).FindAllStringSubmatch(string(read(t, site, "llms.txt")), -1)
	if len(listed) == 0 {
		t.Error("no address is named")
	}
	published := ""
	for _, name := range readIndex(t, site) {
		published += string(read(t, site, path.Base(name)))
	}
	for _, l := range listed {
		if !strings.Contains(published, "<loc>"+html.EscapeString(l[1])+"</loc>") {
			t.Errorf("%s is not in the sitemap", l[1])
		}
	}

	foreign := filepath.Join(site.Public(), "llms.txt")
	if err := os.WriteFile(foreign, []byte("# Mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(t.Context(), true, nil); err == nil || !strings.Contains(err.Error(), "sitemap.llms") {
		t.Errorf("another program's file is no error that says what to do: %v", err)
	}
	if got := string(read(t, site, "llms.txt")); got != "# Mine\n" {
		t.Errorf("another program's file became %q", got)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	write(t, h, true)
	insert(t, site, "settings", 50, "sitemap_enabled", "0")
	write(t, h, true)
	if _, err := os.Stat(foreign); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a site without a sitemap keeps its llms.txt: %v", err)
	}
}

// Only the newest hundred of each kind are named.
func TestLLMsNamesTheNewest(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	for id := 1; id <= 130; id++ {
		insert(t, site, "posts", id, "Post "+strconv.Itoa(id), "", "published", before, before)
		insert(t, site, "slugs", id, "post-"+strconv.Itoa(id), id, postClass, "")
	}
	write(t, handler(t, site, func(c *sitemap.Config) { c.Options.LLMs = true }), true)
	text := string(read(t, site, "llms.txt"))
	if n := strings.Count(text, "- ["); n != 100 || !strings.Contains(text, "[Post 31]") ||
		strings.Contains(text, "[Post 30]") || strings.Index(text, "[Post 130]") > strings.Index(text, "[Post 129]") {
		t.Errorf("%d posts are named:\n%s", n, text)
	}
}
