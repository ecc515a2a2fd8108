package manual

import (
	"cmp"
	"embed"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/cmsjobs/cmsjobs/docs"
	"github.com/cmsjobs/cmsjobs/internal/manual"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature.
func Feature() web.Feature {
	page := func(path, name, summary string, handle func(*web.Request) error) web.Route {
		return web.PageRoute(path, name, summary, "", handle)
	}
	picture := page(web.ManualPath+"/images/:name", "manual.picture", "A picture of the manual.", showPicture)
	picture.Type = "image/png"
	return web.Feature{Name: "manual", Files: files, Routes: []web.Route{
		page(web.ManualPath, "pages.manual", "The manual's entrance and its search.", entrance),
		page(web.ManualPath+"/:name", "pages.chapter", "A chapter of the manual.", showChapter),
		page(web.ManualPath+"/adr/:name", "pages.decision", "The record of a decision.", showDecision),
		picture,
	}}
}

// read is the manual, rendered when somebody first asks for it: the sites of a
// process share it.
var read = sync.OnceValues(func() (*manual.Book, error) { return manual.Read(docs.Files, web.ManualPath) })

// Path is the chapters that one reader starts with.
type Path struct {
	Reader   string // of its texts
	Chapters []string
}

// Paths are the entrances of the manual; each chapter is in one of them.
func Paths() []Path {
	return []Path{
		{"owner", []string{"admin", "backup", "mail", "sitemap", "analytics", "comparison"}},
		{"admin", []string{"install", "settings", "security", "several-sites", "php-jobs", "purge"}},
		{"operator", []string{"operating", "logging", "reliability", "claims", "scaling", "benchmarks", "change-feed"}},
		{"developer", []string{"enqueue", "jobs", "own-types", "api", "architecture", "repository-format",
			"specifications"}},
	}
}

// maxQuery is the longest text that is looked for.
const maxQuery = 200

// front is the entrance.
type front struct {
	Query   string
	Asked   bool
	Hits    []manual.Hit
	Paths   []Path
	Records []*manual.Chapter
	Lost    bool // the chapter that was asked for is not there
	book    *manual.Book
}

// Title is a chapter's.
func (f front) Title(name string) string { return f.book.Chapter(name).Title }

func entrance(req *web.Request) error {
	return frontPage(req, redact.Clip(strings.TrimSpace(req.QueryParam("q")), maxQuery), http.StatusOK)
}

func frontPage(req *web.Request, query string, status int) error {
	book, err := read()
	if err != nil {
		return err
	}
	f := front{Query: query, Asked: query != "", Paths: Paths(), book: book, Lost: status == http.StatusNotFound}
	if f.Asked {
		f.Hits = book.Search(query)
	}
	for _, name := range book.Names() {
		if strings.HasPrefix(name, "adr/") {
			f.Records = append(f.Records, book.Chapter(name))
		}
	}
	return req.Show(web.PageView{Name: "manual", Data: f, Ready: true, Wide: true, Status: status})
}

// chapter is a page of the manual.
type chapter struct {
	*manual.Chapter
	Near           []manual.Heading // what it has, two levels deep
	Previous, Next *manual.Chapter
}

func showChapter(req *web.Request) error { return show(req, req.Param("name")) }

func showDecision(req *web.Request) error { return show(req, "adr/"+req.Param("name")) }

func show(req *web.Request, name string) error {
	book, err := read()
	if err != nil {
		return err
	}
	c := chapter{Chapter: book.Chapter(name)}
	if c.Chapter == nil {
		return frontPage(req, redact.Clip(path.Base(name), maxQuery), http.StatusNotFound)
	}
	for _, h := range c.Headings {
		if h.Level <= 3 {
			c.Near = append(c.Near, h)
		}
	}
	c.Previous, c.Next = neighbours(book, name)
	return req.Show(web.PageView{Name: "chapter", Title: c.Title, Data: c, Ready: true, Wide: true})
}

// neighbours are the chapters before and after one on its reader's path.
func neighbours(book *manual.Book, name string) (previous, next *manual.Chapter) {
	for _, p := range Paths() {
		i := slices.Index(p.Chapters, name)
		if i < 0 {
			continue
		}
		if i > 0 {
			previous = book.Chapter(p.Chapters[i-1])
		}
		if i+1 < len(p.Chapters) {
			next = book.Chapter(p.Chapters[i+1])
		}
		return previous, next
	}
	return nil, nil
}

func showPicture(req *web.Request) error {
	data, err := docs.Files.ReadFile(path.Join("images", path.Base(path.Clean("/"+req.Param("name")))))
	if err != nil {
		return web.Refuse(http.StatusNotFound, "There is nothing with this id.")
	}
	h := req.Response().Header()
	h.Set("Cache-Control", "public, max-age=3600")
	return req.Blob(http.StatusOK, cmp.Or(http.DetectContentType(data), "image/png"), data)
}
