package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

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
	Sites   []SiteLink // of this process, where the person is signed in to several
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

// T is a text of the catalogue, for partials that build keys.
func (v *pageView) T(key string, args ...any) string { return v.printer.Text(key, args...) }

// May says whether the person has a scope.
func (v *pageView) May(scope string) bool { return v.may(access.Scope(scope)) }

// Act is a form with one button that does one thing; nothing where the person
// may not. Pairs after the key are hidden fields; "class" and "id" dress the button.
func (v *pageView) Act(scope, path, key string, pairs ...string) template.HTML {
	if !v.May(scope) {
		return ""
	}
	class, id := "", ""
	var out strings.Builder
	fmt.Fprintf(&out, `<form method="post" action="%s" class="act">%s`, template.HTMLEscapeString(path), v.Hidden())
	for i := 0; i+1 < len(pairs); i += 2 {
		switch pairs[i] {
		case "class":
			class = pairs[i+1]
		case "id":
			id = ` id="` + template.HTMLEscapeString(pairs[i+1]) + `"`
		default:
			fmt.Fprintf(&out, `<input type="hidden" name="%s" value="%s">`, template.HTMLEscapeString(pairs[i]),
				template.HTMLEscapeString(pairs[i+1]))
		}
	}
	fmt.Fprintf(&out, `<button type="submit" class="%s"%s>%s</button></form>`, template.HTMLEscapeString(class), id,
		template.HTMLEscapeString(v.T(key)))
	return template.HTML(out.String())
}

// Hidden are the fields that every form has: the token that says it is ours, and
// where to go back to.
func (v *pageView) Hidden() template.HTML {
	return template.HTML(
		fmt.Sprintf(`<input type="hidden" name="%s" value="%s"><input type="hidden" name="back" value="%s">`,
			formTokenField, template.HTMLEscapeString(v.CSRF), template.HTMLEscapeString(v.Here)))
}

// pageView collects what is the same for all pages.
func (s *Server) pageView(c echo.Context, area, title string, data any) *pageView {
	p, lang := who(c), s.printer(c)
	v := &pageView{Area: area, Lang: lang.Language, printer: lang, Theme: theme(c), Who: p,
		Here: c.Request().URL.RequestURI(), Version: s.cfg.Version, Sites: s.siteLinks(c), Data: data,
		may: func(scope access.Scope) bool { return s.may(p, Route{Scope: scope, Managed: scope != access.Admin}) }}
	v.Title = lang.Text(title)
	if of, inside := s.pages.areas[area]; inside {
		v.Area = of
	}
	if session, ok := c.Get(sessionKey).(string); ok && p.Via == "session" {
		v.CSRF = access.FormToken(session)
	}
	v.Notice, v.Fault = s.takeNotice(c)
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
	return c.HTMLBlob(status, s.based(out.Bytes()))
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
