package purge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/purge"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// site is a CMS whose pages change with each request that reaches it.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
}

func newSite(t *testing.T) *site {
	s := &site{asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked[r.URL.RequestURI()]++
		if strings.HasPrefix(r.URL.Path, "/gone") {
			http.NotFound(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/broken") {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s, version %d", r.URL.Path, s.asked[r.URL.RequestURI()])
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func client() *http.Client {
	return outbound.New(outbound.Options{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
}

// run runs a job and returns its result.
func run(t *testing.T, c purge.Config, p purge.Payload) (purge.Result, error) {
	t.Helper()
	c.Now = time.Now
	if c.Client == nil {
		c.Client = client()
	}
	h, err := purge.New(c)
	if err != nil {
		t.Fatal(err)
	}
	registry := jobs.NewRegistry()
	h.Register(registry)
	entry, known := registry.Lookup("cache.purge")
	payload, err := json.Marshal(p)
	if err != nil || !known {
		t.Fatalf("the type is known: %v, %v", known, err)
	}
	outcome := jobs.NewRun(c.Now)
	failed := entry.Run(jobs.WithRun(t.Context(), outcome), jobs.Job{Type: "cache.purge", Data: payload})
	var r purge.Result
	if result, _ := outcome.Result(); len(result) > 0 {
		if err := json.Unmarshal(result, &r); err != nil {
			t.Fatal(err)
		}
	}
	return r, failed
}

func read(t *testing.T, proxy *jobstest.Server, host, path string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", proxy.Port, path), nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = host
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A page that a real proxy keeps is the new one after its purge, the others stay
// as they are; a purge of all leaves none.
func TestAPurgedPageIsNew(t *testing.T) {
	for name, start := range map[string]func(testing.TB, string) *jobstest.Server{
		purge.Varnish: jobstest.Varnish, purge.Nginx: jobstest.Nginx} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			origin := newSite(t)
			proxy := start(t, origin.Listener.Addr().String())
			const host = "www.example.com"
			d := purge.Destination{Type: name, URL: fmt.Sprintf("http://127.0.0.1:%d", proxy.Port)}
			if name == purge.Nginx {
				d.Prefix = "/purge"
			}
			c := purge.Config{Site: "https://" + host, Destinations: []purge.Destination{d}}
			for _, path := range []string{"/a?page=2", "/b", "/a?page=2", "/b"} {
				if got := read(t, proxy, host, path); !strings.HasSuffix(got, "version 1") {
					t.Fatalf("%s before the purge: %q", path, got)
				}
			}
			r, err := run(t, c, purge.Payload{URLs: []string{"/a?page=2", "/never-cached"}})
			if err != nil || len(r.Destinations) != 1 || r.Destinations[0].Requests != 2 {
				t.Fatalf("%+v, %v", r, err)
			}
			if got := read(t, proxy, host, "/a?page=2"); !strings.HasSuffix(got, "version 2") {
				t.Errorf("the purged page: %q", got)
			}
			if got := read(t, proxy, host, "/b"); !strings.HasSuffix(got, "version 1") {
				t.Errorf("the other page: %q", got)
			}
			if name == purge.Nginx {
				return // the module purges single addresses only
			}
			if _, err := run(t, c, purge.Payload{All: true}); err != nil {
				t.Fatal(err)
			}
			if got := read(t, proxy, host, "/b"); !strings.HasSuffix(got, "version 2") {
				t.Errorf("after all were purged: %q", got)
			}
		})
	}
}

// With a page that changed go the lists that show it and their further pages; a Varnish
// keeps the others.
func TestTheListsOfAChangeAreNew(t *testing.T) {
	origin := newSite(t)
	proxy := jobstest.Varnish(t, origin.Listener.Addr().String())
	const host = "www.example.com"
	versions := func() map[string]string {
		found := map[string]string{}
		for _, path := range []string{"/post", "/world", "/world?page=2", "/world?page=3", "/author/ann", "/vi", "/",
			"/?page=2", "/other"} {
			_, found[path], _ = strings.Cut(read(t, proxy, host, path), "version ")
		}
		return found
	}
	before := versions()
	c := purge.Config{Site: "https://" + host, Pages: 2, Changed: func(context.Context, []string, int) (purge.Found,
		error) {
		return purge.Found{URLs: []string{"/post"}, Lists: []string{"https://" + host + "/world", "https://" + host +
			"/author/ann", "https://" + host + "/vi"}, Purged: func(context.Context) error { return nil }}, nil
	}, Destinations: []purge.Destination{{Type: purge.Varnish, URL: fmt.Sprintf("http://127.0.0.1:%d", proxy.Port)}}}
	if _, err := run(t, c, purge.Payload{Rows: []string{"posts:1"}, Cold: true}); err != nil {
		t.Fatal(err)
	}
	for path, version := range versions() {
		want := "2"
		if path == "/other" || path == "/world?page=3" {
			want = "1"
		}
		if before[path] != "1" || version != want {
			t.Errorf("%s has the version %s, then %s, want %s", path, before[path], version, want)
		}
	}
}

// request is what a service got.
type request struct {
	Method, URI, Body, Key string
}

// service answers as said, and notes what it got.
func service(t *testing.T, answer func(w http.ResponseWriter)) (string, func() []request) {
	var mu sync.Mutex
	var got []request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, request{r.Method, r.RequestURI, strings.TrimSpace(string(body)),
			r.Header.Get("Fastly-Key") + r.Header.Get("Authorization")})
		mu.Unlock()
		answer(w)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []request { mu.Lock(); defer mu.Unlock(); return slices.Clone(got) }
}

func fine(w http.ResponseWriter) { fmt.Fprint(w, `{"success":true,"errors":[]}`) }

// The requests are those that the services document.
func TestServicesGetTheirOwnRequests(t *testing.T) {
	many := make([]string, 31)
	for i := range many {
		many[i] = fmt.Sprintf("/p/%d", i)
	}
	for _, c := range []struct {
		name string
		to   purge.Destination
		p    purge.Payload
		want []request
	}{
		{"cloudflare", purge.Destination{Type: purge.Cloudflare, Zone: "z1", Token: "k"},
			purge.Payload{URLs: []string{"/a", "https://www.example.com/a", "/"}},
			[]request{{"POST", "/zones/z1/purge_cache",
				`{"files":["https://www.example.com/a","https://www.example.com/"]}`, "Bearer k"}}},
		{"cloudflare, all", purge.Destination{Type: purge.Cloudflare, Zone: "z1", Token: "k"}, purge.Payload{All: true},
			[]request{{"POST", "/zones/z1/purge_cache", `{"purge_everything":true}`, "Bearer k"}}},
		{"fastly", purge.Destination{Type: purge.Fastly, Service: "s1", Token: "k"}, purge.Payload{URLs: []string{"/a?b=c"}},
			[]request{{"POST", "/purge/www.example.com/a?b=c", "", "k"}}},
		{"fastly, all", purge.Destination{Type: purge.Fastly, Service: "s1", Token: "k"}, purge.Payload{All: true},
			[]request{{"POST", "/service/s1/purge_all", "", "k"}}},
		{"http", purge.Destination{Type: purge.HTTP, Token: "k"}, purge.Payload{URLs: []string{"/a", "/b"}},
			[]request{{"POST", "/", `{"all":false,"urls":["https://www.example.com/a","https://www.example.com/b"]}`,
				"Bearer k"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, got := service(t, fine)
			c.to.URL = address
			if _, err := run(t, purge.Config{Site: "https://www.example.com", Destinations: []purge.Destination{c.to}}, c.p); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got(), c.want) {
				t.Errorf("got %+v\nwant %+v", got(), c.want)
			}
		})
	}
	address, got := service(t, fine)
	to := []purge.Destination{{Type: purge.Cloudflare, Zone: "z", Token: "k", URL: address},
		{Type: purge.HTTP, Name: "own", Method: "DELETE", URL: address + "/x?page={url}"}}
	r, err := run(t, purge.Config{Site: "https://www.example.com", Destinations: to}, purge.Payload{URLs: many})
	if err != nil || r.Destinations[0].Requests != 2 || r.Destinations[1].Requests != 31 {
		t.Errorf("31 pages: %+v, %v", r, err)
	}
	if last := got()[len(got())-1]; last.Method != "DELETE" ||
		last.URI != "/x?page="+url.QueryEscape("https://www.example.com/p/30") {
		t.Errorf("the last request was %+v", last)
	}
}

// What is not the site's is neither purged nor asked for.
func TestOnlyTheSiteIsPurged(t *testing.T) {
	address, got := service(t, fine)
	c := purge.Config{Site: "https://www.example.com", Hosts: []string{"m.example.com"}, Destinations: []purge.Destination{
		{Type: purge.HTTP, URL: address}}}
	r, err := run(t, c, purge.Payload{URLs: []string{"/a", "https://m.example.com/b", "https://evil.example/c",
		"//evil.example/d", "ftp://www.example.com/e", "https://user:x@www.example.com/f"}})
	if err != nil || r.URLs != 2 || len(r.Refused) != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	want := `{"all":false,"urls":["https://www.example.com/a","https://m.example.com/b"]}`
	if list := got(); len(list) != 1 || list[0].Body != want {
		t.Errorf("got %+v", list)
	}
	if _, err := run(t, c, purge.Payload{URLs: []string{"http://169.254.169.254/latest"}}); !jobs.IsPermanent(err) {
		t.Errorf("a foreign address alone: %v, want a permanent failure", err)
	}
}

// What a service refuses is said without its token; a limit is waited for, and a
// fault of one keeps no other from its purge.
func TestAServiceThatRefuses(t *testing.T) {
	const token = "s3cret-token"
	limit, _ := service(t, func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "77")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	wrong, _ := service(t, func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"success":false,"errors":[{"code":10000,"message":"Authentication error"}]}`)
	})
	forbidden, _ := service(t, func(w http.ResponseWriter) { http.Error(w, "no right", http.StatusForbidden) })
	works, got := service(t, fine)
	config := func(addresses ...string) purge.Config {
		c := purge.Config{Site: "https://www.example.com"}
		for i, a := range addresses {
			c.Destinations = append(c.Destinations, purge.Destination{Name: fmt.Sprint("d", i), Type: purge.Cloudflare,
				Zone: "z", Token: token, URL: a})
		}
		return c
	}
	page := purge.Payload{URLs: []string{"/a"}}
	r, err := run(t, config(limit, wrong, works), page)
	if wait, ok := jobs.AsRetryAfter(err); !ok || wait != 77*time.Second || len(got()) != 1 {
		t.Errorf("%v: want a retry after 77 s, and the third purged (%d)", err, len(got()))
	}
	if !strings.Contains(r.Destinations[1].Error, "Authentication error") || strings.Contains(fmt.Sprint(r, err), token) {
		t.Errorf("%+v, %v: want the reason, and no token", r, err)
	}
	if _, err := run(t, config(forbidden), page); !jobs.IsPermanent(err) || strings.Contains(err.Error(), token) {
		t.Errorf("%v: want a permanent failure", err)
	}
	if _, err := run(t, config("http://127.0.0.1:1"), page); err == nil || jobs.IsPermanent(err) {
		t.Errorf("%v: want a failure that is retried", err)
	}
}

// Pages are asked for after their purge, to their end, each once and no more than
// said; those that are gone are no failures.
func TestPagesAreWarm(t *testing.T) {
	origin := newSite(t)
	c := purge.Config{Site: origin.URL, Warm: purge.WarmOptions{Most: 5, AtOnce: 3}}
	r, err := run(t, c, purge.Payload{URLs: []string{"/a", "/b", "/gone", "/broken", "/c", "/left-1", "/left-2", "/a"}})
	if err != nil || r.Warm == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	w := *r.Warm
	if w.Asked != 5 || w.Found != 3 || w.Gone != 1 || w.Failed != 1 || w.Left != 2 || len(w.Examples) != 1 ||
		!strings.Contains(w.Examples[0], "/broken: 500") {
		t.Errorf("%+v", w)
	}
	if origin.count("/a") != 1 || origin.count("/left-1") != 0 {
		t.Errorf("/a was asked for %d times, /left-1 %d", origin.count("/a"), origin.count("/left-1"))
	}
	if r, _ := run(t, c, purge.Payload{URLs: []string{"/a"}, Cold: true}); r.Warm != nil || origin.count("/a") != 1 {
		t.Errorf("cold: %+v", r)
	}
	if r, _ := run(t, c, purge.Payload{URLs: []string{"/a"}, DryRun: true}); r.Warm != nil || r.URLs != 1 || origin.count("/a") != 1 {
		t.Errorf("dry run: %+v", r)
	}
}

// What changed is noted when it was purged, also where it is nothing; a dry run and a
// purge that failed note nothing.
func TestWhatChangedIsNotedOnce(t *testing.T) {
	address, calls := service(t, fine)
	urls, noted, told := []string{"/a"}, 0, 0
	c := purge.Config{Site: "https://www.example.com", Pages: 2, Changed: func(context.Context, []string, int) (purge.Found,
		error) {
		return purge.Found{URLs: urls, Lists: []string{"https://www.example.com/list"},
			Purged: func(context.Context) error { noted++; return nil }}, nil
	}, Told: func(_ context.Context, c purge.Change) error {
		if told++; !slices.Equal(c.URLs, []string{"/a"}) || c.All {
			t.Errorf("notified of %+v", c)
		}
		return nil
	}}
	for i, x := range []struct {
		url  string
		list []string
		dry  bool
		want int
	}{{address, []string{"/a"}, true, 0}, {address, nil, true, 0}, {"http://127.0.0.1:1", []string{"/a"}, false, 0},
		{address, []string{"/a"}, false, 1}, {address, nil, false, 2}} {
		urls, c.Destinations = x.list, []purge.Destination{{Type: purge.HTTP, URL: x.url}}
		_, err := run(t, c, purge.Payload{Changed: true, DryRun: x.dry, Cold: true})
		if noted != x.want || (err != nil) != (x.url != address) {
			t.Errorf("%d: noted %d times, want %d; %v", i, noted, x.want, err)
		}
	}
	// The pages that list it go with it.
	if got := calls(); len(got) != 1 || got[0].Body != strings.ReplaceAll(
		`{"all":false,"urls":["SITE/a","SITE/list","SITE/list?page=2","SITE/","SITE/?page=2"]}`, "SITE",
		"https://www.example.com") {
		t.Errorf("purged %v", got)
	}
	if told != 1 {
		t.Errorf("told %d times of one change", told)
	}
}

// A payload that names nothing is refused, and so is a flood.
func TestPayloads(t *testing.T) {
	for _, p := range []purge.Payload{{}, {URLs: make([]string, 5001)}} {
		if err := p.Validate(); err == nil {
			t.Errorf("%d URLs are taken", len(p.URLs))
		}
	}
	if err := (&purge.Payload{All: true}).Validate(); err != nil {
		t.Error(err)
	}
}
