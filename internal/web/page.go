package web

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
	"github.com/cmsjobs/cmsjobs/templates"
)

// pages are the parsed templates of the admin pages, by language and name, and
// the files that they load.
type pages struct {
	sets   map[string]*template.Template // "en jobs"
	areas  map[string]string             // of pages: the entry of the menu
	assets assets
}

// shared templates are part of every page.
var shared = []string{"layout.html", "parts.html"}

func newPages(s *Server) (*pages, error) {
	files := templates.Admin()
	loaded, err := loadAssets(files)
	if err != nil {
		return nil, err
	}
	p := &pages{sets: map[string]*template.Template{}, assets: loaded,
		areas: map[string]string{}}
	for _, lang := range locale.Languages() {
		base, err := template.New("layout.html").Funcs(s.functions(s.texts.In(lang.Code), loaded)).ParseFS(files,
			shared...)
		if err != nil {
			return nil, err
		}
		if err := p.add(lang.Code, base, files, ""); err != nil {
			return nil, err
		}
		for _, f := range s.cfg.Features {
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

// pageView is what every page's template gets.
type pageView struct {
	Area   string // which entry of the menu is current
	Title  string
	Lang   string
	Theme  string // light, dark, or auto
	Who    access.Principal
	CSRF   string
	Here   string // this page's path and query
	Notice string
	Fault  bool // the notice is bad news
	// Live is what makes the part of the page that lives load itself again, in
	// htmx's words; "" when nothing there can change.
	Live    string
	Pending bool // some figures are being counted still
	Version string
	Data    any
	printer locale.Printer
	may     func(access.Scope) bool
}

// The triggers of live parts. Events come from /api/v1/events; the slow poll
// serves where they are cut off by a proxy.
const (
	LiveList    = "sse:stats throttle:1s, sse:job throttle:1s, sse:run throttle:1s, every 15s"
	LiveJob     = "every 1s"
	refreshSoon = "load delay:600ms"
)

// pageView collects what is the same for all pages.
func (s *Server) pageView(c echo.Context, area, title string, data any) *pageView {
	p, lang := who(c), s.printer(c)
	v := &pageView{Area: area, Lang: lang.Language, printer: lang, Theme: theme(c), Who: p,
		Here: c.Request().URL.RequestURI(), Version: s.cfg.Version, Data: data,
		may: func(scope access.Scope) bool { return s.may(p, Route{Scope: scope, Managed: scope != access.Admin}) }}
	v.Title = lang.Text(title)
	if of, inside := s.pages.areas[area]; inside {
		v.Area = of
	}
	if session, ok := c.Get(sessionKey).(string); ok && p.Via == "session" {
		v.CSRF = access.FormToken(session)
	}
	v.Notice, v.Fault = takeNotice(c)
	return v
}

func (s *Server) write(c echo.Context, status int, name string, v *pageView) error {
	set := s.pages.sets[v.Lang+" "+name]
	if set == nil {
		return fmt.Errorf("there is no page %q", name)
	}
	var out bytes.Buffer
	if err := set.Execute(&out, v); err != nil {
		return fmt.Errorf("filling in the page %s: %w", name, err)
	}
	if c.Request().Method == http.MethodHead {
		return c.NoContent(status)
	}
	return c.HTMLBlob(status, out.Bytes())
}

// isPage says whether people asked, not a program.
func isPage(c echo.Context) bool {
	path := c.Request().URL.Path
	return path == "/admin" || strings.HasPrefix(path, "/admin/")
}

// showProblem tells a refusal or a failure on a page; a person who is not
// signed in gets the form, and comes back to the page that they asked for.
func (s *Server) showProblem(c echo.Context, p Problem) {
	var err error
	if p.Status == http.StatusUnauthorized {
		if c.Request().Header.Get("HX-Request") != "" {
			c.Response().Header().Set("HX-Refresh", "true")
		}
		err = s.signInForm(c, p.Status, "", "")
	} else {
		lang := s.printer(c)
		p.Detail, p.Title = s.viewer(c).Text(p.in(lang)), lang.Sentence("%s", []any{p.Title})
		v := s.pageView(c, "", "problem.title", p)
		err = s.write(c, p.Status, "problem", v)
	}
	if err != nil {
		s.cfg.Log.Error("page not rendered", "event", "web.page_failed", "request", p.Instance, "error", err)
	}
}

// --- After an action: back to a page, with a notice ---

const noticeCookie = "cmsjobs_notice"

// back sends the browser to a page of ours after an action, with a notice there.
func (s *Server) back(c echo.Context, to, key string, args ...any) error {
	return s.backSaying(c, to, s.printer(c).Text(key, args...))
}

// backUndone is back after nothing was done.
func (s *Server) backUndone(c echo.Context, to, key string) error {
	return s.backSaying(c, to, undone+s.printer(c).Text(key))
}

// undone begins a notice that nothing was done.
const undone = "!"

func (s *Server) backSaying(c echo.Context, to, text string) error {
	c.SetCookie(&http.Cookie{Name: noticeCookie, Value: url.QueryEscape(clip(text, 900)), Path: "/admin", MaxAge: 60,
		HttpOnly: true, Secure: c.Scheme() == "https", SameSite: http.SameSiteStrictMode})
	return c.Redirect(http.StatusSeeOther, to)
}

// takeNotice reads the notice once. Loads of a live part leave it.
func takeNotice(c echo.Context) (string, bool) {
	cookie, err := c.Cookie(noticeCookie)
	if err != nil || cookie.Value == "" || c.Request().Header.Get("HX-Request") != "" {
		return "", false
	}
	c.SetCookie(&http.Cookie{Name: noticeCookie, Path: "/admin", MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	text, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(text, undone)
}

// local is a path of ours to go back to, whatever the form says.
func local(path, fallback string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/admin") ||
		strings.ContainsAny(path, "\\\r\n") {
		return fallback
	}
	return u.RequestURI()
}

// --- Before a dangerous action: what will it do? ---

// Fact is one figure of what an action will do.
type Fact struct{ Name, Value string }

// question is an action that waits for a yes.
type question struct {
	Text   string
	Action string // where the form goes
	Fields [][2]string
	Back   string
	// Typed must be written by hand to say yes; "" asks for a click only.
	Typed string
	Wrong bool // it was written wrongly, or a box that is required was not ticked
	Facts []Fact
	Boxes []Box
}

// Box is one that a person ticks beside a question.
type Box struct {
	Name, Text string
	Required   bool
}

// ticked says whether all boxes that are required are.
func (q question) ticked(c echo.Context) bool {
	return !slices.ContainsFunc(q.Boxes, func(b Box) bool { return b.Required && c.FormValue(b.Name) != "yes" })
}

// sureOf says whether the person said yes; where not, it asks them.
func (s *Server) sureOf(c echo.Context, q question) (bool, error) {
	if c.FormValue("sure") == "yes" && (q.Typed == "" || c.FormValue("typed") == q.Typed) && q.ticked(c) {
		return true, nil
	}
	form, err := c.FormParams()
	if err != nil {
		return false, httpError(http.StatusBadRequest, "The form cannot be read.")
	}
	q.Action, q.Wrong, q.Back = c.Request().URL.RequestURI(), c.FormValue("sure") == "yes",
		local(c.FormValue("back"), "/admin")
	for name, values := range form {
		if name == formTokenField || name == "sure" || name == "typed" ||
			slices.ContainsFunc(q.Boxes, func(b Box) bool { return b.Name == name }) {
			continue
		}
		for _, value := range values {
			q.Fields = append(q.Fields, [2]string{name, value})
		}
	}
	setAuditTarget(c, "", "asked only")
	return false, s.write(c, http.StatusOK, "confirm", s.pageView(c, "", "confirm.title", q))
}

// --- How it looks ---

const (
	themeCookie    = "cmsjobs_theme"
	languageCookie = "cmsjobs_lang"
	lookAge        = 365 * 24 * time.Hour
)

func theme(c echo.Context) string {
	if cookie, err := c.Cookie(themeCookie); err == nil && (cookie.Value == "light" || cookie.Value == "dark") {
		return cookie.Value
	}
	return "auto"
}

// preferences changes theme and language: the browser's own matter, kept in cookies.
func (s *Server) preferences(c echo.Context) error {
	keep := func(name, value string) {
		c.SetCookie(&http.Cookie{Name: name, Value: value, Path: "/admin", MaxAge: int(lookAge / time.Second),
			HttpOnly: true, Secure: c.Scheme() == "https", SameSite: http.SameSiteLaxMode})
	}
	switch t := c.FormValue("theme"); t {
	case "light", "dark", "auto":
		keep(themeCookie, t)
	}
	if l := c.FormValue("lang"); s.texts.Known(l) {
		keep(languageCookie, l)
	}
	return c.Redirect(http.StatusSeeOther, local(c.FormValue("back"), "/admin/sign-in"))
}

// PageRows is how many rows a page of a list shows.
const PageRows = 50

// NextPage is the address of a list's next part, "" at its end.
func NextPage(path string, query url.Values, cursor string) string {
	if cursor == "" {
		return ""
	}
	query.Set("cursor", cursor)
	return path + "?" + query.Encode()
}

// StatusNames are the statuses of jobs, in the order of the pages.
func StatusNames() []string {
	return []string{"queued", "processing", "completed", "failed", "cancelled"}
}
