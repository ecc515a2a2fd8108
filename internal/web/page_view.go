package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// pageView is what every page's template gets.
type pageView struct {
	Area  string // which entry of the menu is current
	Title string
	Lang  string
	Theme string // light, dark, or auto
	Who   access.Principal
	CSRF  string
	Here  string // this page's path and query
	notice
	// Way leads back from a page that tells a refusal; "" where there is no other page.
	Way string
	// Live is what makes the part of the page that lives load itself again, in
	// htmx's words; "" when nothing there can change.
	Live string
	// Known is the state of the figures when the page began to be made: no event of it
	// has to make the page load itself again.
	Known   string
	Pending bool // some figures are being counted still
	// Chapter is the place of the manual that explains the page; "" is none.
	Chapter string
	Wide    bool // is as wide as the window for those who are not signed in, too
	Version string
	Sites   []SiteLink // of this process, where the person is signed in to several
	Data    any
	printer locale.Printer
	may     func(access.Scope) bool
	name    string // of the page
	icon    func(string) (template.HTML, error)
	menu    []Feature
	counts  []Count
}

// menuGroup is a part of the menu as a page shows it.
type menuGroup struct {
	Name    string // of its heading's text; "" has none
	Entries []menuItem
}

// menuItem is an entry of the menu as a page shows it.
type menuItem struct {
	MenuEntry
	Group   string
	Current bool
	Own     bool // the page is the entry's own, not one below it
	Count   *Count
}

// Groups are the menu.
func (v *pageView) Groups() []menuGroup {
	all := []menuGroup{{"", v.items(Queue, "")}, {"site", v.items(Site, "site")}}
	if v.May(string(access.Admin)) {
		all = append(all, menuGroup{"administration", v.items(Administration, "administration")})
	}
	return all
}

func (v *pageView) items(part Group, name string) []menuItem {
	var all []menuItem
	for _, e := range menu(v.menu, part) {
		item := menuItem{MenuEntry: e, Group: name, Current: e.Name == v.Area, Own: e.Name == v.name}
		if i := slices.IndexFunc(v.counts, func(n Count) bool { return n.Path == e.Path }); i >= 0 {
			item.Count = &v.counts[i]
		}
		all = append(all, item)
	}
	return all
}

// Section is the entry of the menu that the page belongs to; nil is none.
func (v *pageView) Section() *menuItem {
	for _, group := range v.Groups() {
		for _, item := range group.Entries {
			if item.Current {
				return &item
			}
		}
	}
	return nil
}

// The figures of the menu are as old as menuAge at most; no page waits longer for
// them than menuPatience.
const (
	menuAge      = 3 * time.Second
	menuPatience = 100 * time.Millisecond
)

// counts are the figures of the menu, from what is kept; none where they do not
// come in time.
func (s *Server) counts(c echo.Context) []Count {
	if c.Request().Header.Get("HX-Request") != "" {
		return nil // the part that is loaded again has no menu
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), menuPatience)
	defer cancel()
	counts, err := answers.Fresh(ctx, s.answers, "menu", menuAge,
		func(ctx context.Context) (all []Count, err error) {
			for _, f := range s.cfg.Features {
				if f.Counts == nil {
					continue
				}
				some, err := f.Counts(ctx, s.cfg, s.answers)
				if err != nil {
					return nil, fmt.Errorf("counting for the menu, %s: %w", f.Name, err)
				}
				all = append(all, some...)
			}
			return all, nil
		})
	if err != nil && c.Request().Context().Err() == nil {
		s.cfg.Log.Debug("figures of the menu not counted", "event", "web.figures_failed", "error", err)
	}
	return counts
}

// noteState notes the state of the figures before a page reads its own: what changes
// after that is news to the page.
func (s *Server) noteState(c echo.Context) {
	if c.Request().Header.Get("HX-Request") != "" || !s.may(who(c), Route{Scope: access.Read}) {
		return // the part that is loaded again listens already
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), menuPatience)
	defer cancel()
	if stats, err := Stats(ctx, s.cfg, s.answers); err == nil {
		c.Set(knownKey, stateOf(ops.Stats(ageless(stats))))
	}
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
// may not. Pairs after the key are hidden fields; "class", "icon" and "id" dress the
// button; one of the class icon shows its text to those only who cannot see it.
func (v *pageView) Act(scope, path, key string, pairs ...string) template.HTML {
	if !v.May(scope) {
		return ""
	}
	class, id, icon := "", "", template.HTML("")
	var out strings.Builder
	fmt.Fprintf(&out, `<form method="post" action="%s" class="act">%s`, template.HTMLEscapeString(path), v.Hidden())
	for i := 0; i+1 < len(pairs); i += 2 {
		switch pairs[i] {
		case "class":
			class = " " + pairs[i+1]
		case "icon":
			icon, _ = v.icon(pairs[i+1])
		case "id":
			id = ` id="` + template.HTMLEscapeString(pairs[i+1]) + `"`
		default:
			fmt.Fprintf(&out, `<input type="hidden" name="%s" value="%s">`, template.HTMLEscapeString(pairs[i]),
				template.HTMLEscapeString(pairs[i+1]))
		}
	}
	text := template.HTMLEscapeString(v.T(key))
	if strings.HasSuffix(class, " icon") {
		id, text = id+` title="`+text+`"`, `<span class="vh">`+text+`</span>`
	}
	fmt.Fprintf(&out, `<button type="submit" class="btn%s"%s>%s%s</button></form>`, template.HTMLEscapeString(class),
		id, icon, text)
	return template.HTML(out.String())
}

// Hidden are the fields that every form has: the token that says it is ours, and
// where to go back to.
func (v *pageView) Hidden() template.HTML { return v.HiddenFor("") }

// HiddenFor is Hidden for a form that goes back to another page; "" is this one.
func (v *pageView) HiddenFor(back string) template.HTML {
	return template.HTML(
		fmt.Sprintf(`<input type="hidden" name="%s" value="%s"><input type="hidden" name="back" value="%s">`,
			formTokenField, template.HTMLEscapeString(v.CSRF), template.HTMLEscapeString(cmp.Or(back, v.Here))))
}

// pageView collects what is the same for all pages.
func (s *Server) pageView(c echo.Context, area, title string, data any) *pageView {
	p, lang := who(c), s.printer(c)
	v := &pageView{Area: area, name: area, Lang: lang.Language, printer: lang, Theme: theme(c), Who: p,
		Here: c.Request().URL.RequestURI(), Version: s.cfg.Version, Sites: s.siteLinks(c), Data: data,
		icon: s.pages.assets.icon, menu: s.cfg.Features,
		may: func(scope access.Scope) bool { return s.may(p, Route{Scope: scope, Managed: scope != access.Admin}) }}
	v.Title, v.Chapter = lang.Text(title), s.pages.chapters[area]
	if of, inside := s.pages.areas[area]; inside {
		v.Area = of
	}
	if session, ok := c.Get(sessionKey).(string); ok && p.Via == "session" {
		v.CSRF = access.FormToken(session)
	}
	v.Known, _ = c.Get(knownKey).(string)
	v.notice = s.takeNotice(c)
	if v.May(string(access.Read)) {
		v.counts = s.counts(c)
	}
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
