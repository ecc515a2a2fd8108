package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// SiteLink is a site of this process that the caller may open.
type SiteLink struct {
	Name, Path string
	Ready      bool // it can work; asked for by the list of sites only
	Current    bool
}

// addressed are the attributes of our pages that name a path of ours. A quote in a
// text is escaped, so this finds attributes only.
var addressed = regexp.MustCompile(
	`( (?:href|action|src|formaction|hx-get|hx-post|sse-connect)=")(/(?:admin|api|docs)(?:[/?#"]))`)

// based puts the base path before the paths of a page: templates and handlers know
// their own paths only.
func (s *Server) based(page []byte) []byte {
	if s.cfg.Base == "" {
		return page
	}
	return addressed.ReplaceAll(page, []byte("${1}"+s.cfg.Base+"${2}"))
}

// redirects puts the base path before where a browser is sent.
func (s *Server) redirects(next echo.HandlerFunc) echo.HandlerFunc {
	if s.cfg.Base == "" {
		return next
	}
	return func(c echo.Context) error {
		c.Response().Before(func() {
			h := c.Response().Header()
			if to := h.Get(echo.HeaderLocation); strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") {
				h.Set(echo.HeaderLocation, s.cfg.Base+to)
			}
		})
		return next(c)
	}
}

// cookiePath is where the browser sends the cookie of a page's notice.
func (s *Server) cookiePath() string { return s.cfg.Base + "/admin" }

// lookPath is where the browser sends the cookies of the pages' look: to the manual
// and the description of the API, too.
func (s *Server) lookPath() string { return s.cfg.Base + "/" }

// cookieName is the session's cookie: bound to this host where HTTPS is used, and
// of this site alone where several have one host.
func (s *Server) cookieName(c echo.Context) string {
	if c.Scheme() == "https" {
		return "__Host-" + sessionName(s.cfg.Base)
	}
	return sessionName(s.cfg.Base)
}

func sessionName(base string) string {
	if base == "" {
		return "cmsjobs"
	}
	return "cmsjobs-" + base[strings.LastIndex(base, "/")+1:]
}

// HasSession says whether a browser has a session of the server below base, or had one
// lately: the server itself decides what it may do.
func HasSession(r *http.Request, base string) bool {
	name := sessionName(base)
	for _, cookie := range r.Cookies() {
		if cookie.Name == name || cookie.Name == "__Host-"+name {
			return true
		}
	}
	return false
}

// siteLinks are the sites of this process that the caller is signed in to, where
// there are others than this one.
func (s *Server) siteLinks(c echo.Context) []SiteLink {
	if s.cfg.Sites == nil || !who(c).Known() {
		return nil
	}
	links := s.cfg.Sites(c.Request())
	if len(links) < 2 {
		return nil
	}
	for i := range links {
		links[i].Current = links[i].Path == s.cfg.Base+"/admin"
	}
	return links
}

// openAPIBased names the base path in the description of the API.
func (s *Server) openAPIBased(document []byte) []byte {
	if s.cfg.Base == "" {
		return document
	}
	rest := bytes.TrimLeft(bytes.TrimSpace(document), "{")
	return append([]byte(`{"servers":[{"url":"`+s.cfg.Base+`"}],`), rest...)
}

// SitesConfig is what the list of a process's sites is made of.
type SitesConfig struct {
	// Sites lists the sites that a request has a session of.
	Sites   func(*http.Request) []SiteLink
	Version string
	Now     func() time.Time
	Log     *slog.Logger
}

// SitesList is the page /admin of a process with several sites: those that the caller
// is signed in to. It names no other site, as one may be nobody's business but its own.
func SitesList(c SitesConfig) (http.Handler, error) {
	sites := c.Sites
	s := &Server{cfg: Config{Version: c.Version, Now: c.Now, Log: c.Log}, echo: echo.New(),
		origin: http.NewCrossOriginProtection()}
	var err error
	if s.texts, err = Texts(nil); err != nil {
		return nil, err
	}
	if s.pages, err = newPages(s.texts, c.Now, nil); err != nil {
		return nil, err
	}
	s.echo.HTTPErrorHandler = s.answerError
	s.echo.Use(s.recover, s.headers, refuseTwoLengths)
	s.echo.GET("/admin", func(c echo.Context) error {
		return s.write(c, http.StatusOK, "sites", s.pageView(c, "", "sites.title", sites(c.Request())))
	})
	s.echo.POST("/admin/look", func(c echo.Context) error {
		if err := s.origin.Check(c.Request()); err != nil {
			return httpError(http.StatusForbidden, "This request comes from another site and is refused.")
		}
		return s.preferences(c)
	})
	s.echo.GET("/admin/assets/*", s.asset)
	return s.echo, nil
}
