package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/locale"
	"github.com/cmsjobs/cmsjobs/templates"
)

// pages are the parsed templates of the admin pages, by language and name, and
// the files that they load.
type pages struct {
	sets  map[string]*template.Template // "en jobs"
	areas map[string]string             // of pages: the entry of the menu
	// chapters of the manual that explain pages.
	chapters map[string]string
	assets   assets
}

// shared templates are part of every page.
var shared = []string{"layout.html", "parts.html"}

// newPages reads the templates of the core and of features in each language.
func newPages(texts *locale.Catalog, now func() time.Time, features []Feature) (*pages, error) {
	files := templates.Admin()
	loaded, err := loadAssets(files)
	if err != nil {
		return nil, err
	}
	p := &pages{sets: map[string]*template.Template{}, assets: loaded,
		areas: map[string]string{}, chapters: chapters(features)}
	for _, lang := range locale.Languages() {
		base, err := template.New("layout.html").Funcs(functions(texts.In(lang.Code), loaded, now)).
			ParseFS(files, shared...)
		if err != nil {
			return nil, err
		}
		if err := p.add(lang.Code, base, files, ""); err != nil {
			return nil, err
		}
		for _, f := range features {
			if f.Files == nil {
				continue
			}
			if err := p.add(lang.Code, base, f.Files, f.Name); err != nil {
				return nil, err
			}
			for _, entry := range f.Also {
				p.areas[entry.Name] = entry.Name
			}
		}
	}
	return p, nil
}

// add reads the pages of a folder, which belong to one entry of the menu, or
// each to its own.
func (p *pages) add(lang string, base *template.Template, files fs.FS, area string) error {
	names, err := fs.Glob(files, "page_*.html")
	if err != nil {
		return err
	}
	for _, file := range names {
		page, err := base.Clone()
		if err != nil {
			return err
		}
		if page, err = page.ParseFS(files, file); err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "page_"), ".html")
		p.sets[lang+" "+name] = page
		if area != "" {
			p.areas[name] = area
		}
	}
	return nil
}

// Texts are the texts of the pages: the core's and those of the features.
func Texts(features []Feature) (*locale.Catalog, error) {
	core, err := fs.Sub(templates.Admin(), "texts")
	if err != nil {
		return nil, err
	}
	folders := []fs.FS{core}
	for _, f := range features {
		if f.Files != nil {
			folders = append(folders, f.Files)
		}
	}
	catalog, err := locale.Load(folders...)
	if err != nil {
		return nil, fmt.Errorf("reading the texts of the pages: %w", err)
	}
	return catalog, nil
}

// asset is a file that pages load, under a path that changes with its content:
// browsers may keep it for ever.
type asset struct {
	jobType string
	data    []byte
	zipped  []byte // by gzip; nil where that is not smaller
}

// zip compresses a file; pages themselves are not compressed, as they hold tokens
// beside what others wrote.
func zip(data []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil || w.Close() != nil || out.Len() >= len(data) {
		return nil
	}
	return out.Bytes()
}

// assets are files by "hash/name"; paths lead from a name to that. icons are the
// names in icons.svg.
type assets struct {
	files map[string]asset
	paths map[string]string
	icons map[string]bool
}

func loadAssets(files fs.FS) (assets, error) {
	a := assets{files: map[string]asset{}, paths: map[string]string{}, icons: map[string]bool{}}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		return a, err
	}
	for _, e := range entries {
		data, err := fs.ReadFile(files, path.Join("assets", e.Name()))
		if err != nil {
			return a, err
		}
		sum := sha256.Sum256(data)
		key := hex.EncodeToString(sum[:6]) + "/" + e.Name()
		jobType := mime.TypeByExtension(path.Ext(e.Name()))
		if strings.HasSuffix(e.Name(), ".js") {
			jobType = "text/javascript; charset=utf-8"
		}
		if jobType == "" {
			jobType = echo.MIMETextPlainCharsetUTF8
		}
		a.files[key], a.paths[e.Name()] = asset{jobType, data, zip(data)}, "/admin/assets/"+key
		if e.Name() == iconFile {
			for _, found := range iconID.FindAllSubmatch(data, -1) {
				a.icons[string(found[1])] = true
			}
		}
	}
	return a, nil
}

const iconFile = "icons.svg"

var iconID = regexp.MustCompile(`id="([a-z]+)"`)

// icon draws one of icons.svg, for the eye only; a wrong name stops the page.
func (a assets) icon(name string) (template.HTML, error) {
	if !a.icons[name] {
		return "", fmt.Errorf("there is no icon %q", name)
	}
	return template.HTML(fmt.Sprintf(`<svg class="i" viewBox="0 0 16 16" aria-hidden="true"><use href="%s#%s"/></svg>`,
		a.paths[iconFile], name)), nil
}

// entryIcon draws the icon of a menu's entry; one without its own icon gets a sheet's.
func (a assets) entryIcon(name string) (template.HTML, error) {
	if !a.icons[name] {
		name = "audit"
	}
	return a.icon(name)
}

// looks are how badges look, by the word for what they say: their class and icon.
var looks = map[string][2]string{
	"queued": {"", "clock"}, "delayed": {"", "clock"}, "processing": {"busy", "play"},
	"retrying": {"warn", "retry"}, "completed": {"ok", "check"}, "ok": {"ok", "check"},
	"failed": {"bad", "cross"}, "cancelled": {"", "ban"}, "stalled": {"warn", "warning"},
	"paused": {"warn", "pause"}, "partial": {"warn", "warning"}, "off": {"", "ban"},
	"retried": {"warn", "retry"}, "crashed": {"bad", "cross"}, "missed": {"warn", "warning"}, "skipped": {"", "ban"},
}

// badge is a status: colour, icon and word. A word without a look gets the one of
// what waits.
func (a assets) badge(word string, text any) (template.HTML, error) {
	look, known := looks[word]
	if !known {
		look = looks["queued"]
	}
	icon, err := a.icon(look[1])
	return template.HTML(fmt.Sprintf(`<span class="%s">%s%s</span>`, strings.TrimSpace("badge "+look[0]), icon,
		template.HTMLEscapeString(fmt.Sprint(text)))), err
}

// path is where a page finds an asset; a wrong name stops the page.
func (a assets) path(name string) (string, error) {
	if p, ok := a.paths[name]; ok {
		return p, nil
	}
	return "", fmt.Errorf("there is no asset %q", name)
}
