package links

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// site is a web server with a few pages, which counts what it is asked.
type site struct {
	*httptest.Server
	pages map[string]string // path to HTML
	mu    sync.Mutex
	asked map[string]int // by method and path
}

func newSite(t *testing.T, pages map[string]string) *site {
	t.Helper()
	s := &site{pages: pages, asked: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// times is how often a page was asked for.
func (s *site) times(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.Method+" "+r.URL.RequestURI()]++
	s.mu.Unlock()
	page, there := s.pages[r.URL.RequestURI()]
	status, rest, _ := strings.Cut(page, " ")
	switch code := 0; {
	case !there:
		http.NotFound(w, r)
	case strings.HasPrefix(page, "-> "):
		http.Redirect(w, r, rest, http.StatusFound)
	case len(status) == 3 && json.Unmarshal([]byte(status), &code) == nil:
		w.WriteHeader(code)
	case page == "hang":
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}
}

// check runs one job.
func (s *site) check(t *testing.T, change func(*Config), p Payload) (Result, error) {
	t.Helper()
	c := Config{Site: s.URL, Now: time.Now, Client: outbound.New(outbound.Options{Timeout: time.Second,
		AllowPrivate: everywhere(), AllowHTTP: true, SameHostRedirects: true, MaxBody: maxPage})}
	if change != nil {
		change(&c)
	}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	run := jobs.NewRun(time.Now)
	err = h.run(jobs.WithRun(t.Context(), run), jobs.Job{UUID: "u"}, p)
	text, _ := run.Result()
	var r Result
	if len(text) > 0 {
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
	}
	return r, err
}

func TestLinksThatLeadNowhereAreNamed(t *testing.T) {
	s := newSite(t, map[string]string{
		"/": `<html><head><link rel="stylesheet" href="/site.css"><link rel="preconnect" href="/not-asked"></head>
			<a href="/news">News</a><a href="news#top">twice</a><a href="/gone">old</a><a href="#here">here</a>
			<a href="mailto:me@example.com">mail</a><a href="https://other.example/page">another site</a>
			<a href="http://[bad">no address</a><a href="/private">members</a><a href="/moved">moved</a>`,
		"/news": `<base href="/news/"><a href="one">one</a><a href="/gone">again</a><img src="/lost.jpg">
			<img src="/there.jpg"><a href="/broken">server</a><a href="/loop">loop</a><script src="/app.js"></script>`,
		"/news/one": `<a href="../news">back</a><a href="/silent">silent</a>`,
		"/moved":    "-> /news/one",
		"/loop":     "-> /loop", "/site.css": "200 ", "/there.jpg": "405 ", "/app.js": "200 ",
		"/private": "403 ", "/broken": "500 ", "/silent": "hang"})
	var told []string
	r, err := s.check(t, func(c *Config) {
		c.Found = func(_ context.Context, job jobs.Job, r Result) {
			told = append(told, fmt.Sprint(job.UUID, " ", r.Found))
		}
	}, Payload{})
	if err != nil {
		t.Fatal(err)
	}
	var broken []string
	for _, b := range r.Broken {
		u, err := url.Parse(b.URL)
		if err != nil {
			t.Fatal(err)
		}
		broken = append(broken, fmt.Sprintf("%s %d %d %t", u.Path, b.Status, b.Links, b.Error != ""))
	}
	slices.Sort(broken)
	want := []string{"/broken 500 1 false", "/gone 404 2 false", "/loop 0 1 true", "/lost.jpg 404 1 false",
		"/silent 0 1 true", "/there.jpg 405 1 false"}
	if !slices.Equal(broken, want) {
		t.Errorf("broken are %q, not %q", broken, want)
	}
	if r.Found != len(want) || r.Pages != 9 || r.Files != 4 || r.Left != 0 {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(told, []string{"u 6"}) {
		t.Errorf("told %q", told)
	}
	for what, n := range map[string]int{"GET /news": 1, "HEAD /site.css": 1, "GET /site.css": 0, "GET /there.jpg": 1,
		"GET /not-asked": 0, "HEAD /not-asked": 0} {
		if s.times(what) != n {
			t.Errorf("%s was asked for %d times, not %d", what, s.times(what), n)
		}
	}
	if on := r.Broken[0].On; len(on) == 0 || !strings.HasPrefix(on[0], s.URL) {
		t.Errorf("%+v names no page", r.Broken[0])
	}
}

// A check begins with what the CMS has, as pages that nothing links to have links too.
func TestAddressesOfTheContentAreFollowed(t *testing.T) {
	s := newSite(t, map[string]string{"/": "home", "/alone": `<a href="/gone">x</a>`})
	addresses := func(list ...string) func(*Config) {
		return func(c *Config) {
			c.Addresses = func(context.Context) iter.Seq2[string, error] {
				return func(yield func(string, error) bool) {
					for _, a := range list {
						if !yield(a, nil) {
							return
						}
					}
					yield("", errors.New("the table is gone"))
				}
			}
		}
	}
	if _, err := s.check(t, addresses(s.URL+"/alone"), Payload{}); err == nil ||
		!strings.Contains(err.Error(), "the table is gone") {
		t.Errorf("%v", err)
	}
	r, err := s.check(t, addresses("https://other.example/x", s.URL+"/alone", s.URL+"/never"), Payload{Most: 2})
	if err != nil || r.Pages != 2 || r.Left != 1 || r.Found != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if s.times("GET /gone") > 0 {
		t.Error("more was asked for than allowed")
	}
	r, err = s.check(t, addresses(), Payload{From: []string{"/alone"}})
	if err != nil || r.Pages != 2 || r.Found != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What a run cannot do is said, and no page is called broken for it.
func TestALimitIsNoBrokenLink(t *testing.T) {
	s := newSite(t, map[string]string{"/": `<a href="/busy">x</a><a href="/next">y</a>`, "/busy": "429 ", "/next": "z"})
	r, err := s.check(t, nil, Payload{})
	if err != nil || r.Left != 1 || r.Found != 0 {
		t.Errorf("a site that asks not to be asked: %+v, %v", r, err)
	}
	now := time.Now()
	r, err = s.check(t, func(c *Config) {
		c.AtOnce = 1
		c.Now = func() time.Time { now = now.Add(10 * time.Minute); return now }
	}, Payload{})
	if err != nil || r.Left == 0 || r.Found != 0 {
		t.Errorf("out of time: %+v, %v", r, err)
	}
	_, err = s.check(t, nil, Payload{From: []string{"https://other.example/"}})
	if !jobs.IsPermanent(err) || len(s.asked) == 0 {
		t.Errorf("another site: %v", err)
	}
	s.Close()
	if _, err := s.check(t, nil, Payload{}); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a site that is down: %v", err)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(`<base href="//x"><a href="?a=b">`)
	f.Add(`<img src=data:x><link rel=icon href=/i>`)
	at, err := url.Parse("https://example.com/a/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, page string) {
		for _, l := range extract(strings.NewReader(page), at) {
			if l.to.Host == "" || l.to.Fragment != "" || l.to.User != nil ||
				l.to.Scheme != "http" && l.to.Scheme != "https" {
				t.Errorf("%q", l.to)
			}
		}
	})
}

func everywhere() []netip.Prefix { return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0)} }
