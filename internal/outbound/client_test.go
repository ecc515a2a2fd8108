package outbound

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// loopback is a server that counts who reached it.
func loopback(t *testing.T, answer http.HandlerFunc) (*httptest.Server, *atomic.Int64, uint16) {
	t.Helper()
	var hits atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return s, &hits, uint16(port)
}

var ours = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// 43 hosts that are IP addresses: they must be refused by the dialled address.
var hostileIPs = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.0.0.2",
	"127.255.255.254",
	"169.254.169.254", "169.254.0.1", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1",
	"192.88.99.1", "192.168.0.1",
	"192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255",
	"240.0.0.1", "255.255.255.255",
	"[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:169.254.169.254]", "[::127.0.0.1]",
	"[64:ff9b::7f00:1]", "[64:ff9b:1::1]",
	"[100::1]", "[2001::1]", "[2001:db8::1]", "[2002:7f00:1::]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]",
	"[ff02::1]",
}

// 11 hosts that only look different: names, numbers and disguises of loopback.
var hostileNames = []string{
	"localhost", "LOCALHOST", "localhost.", "127.1", "127.0.1", "0x7f000001", "0x7f.0.0.1", "2130706433",
	"017700000001", "0177.0.0.1", "127.0.0.1.",
}

func TestHostileAddressesAreNotReached(t *testing.T) {
	if n := len(hostileIPs) + len(hostileNames); n != 54 {
		t.Fatalf("%d hostile addresses, want 54", n)
	}
	_, hits, port := loopback(t, func(http.ResponseWriter, *http.Request) {})
	client := New(Options{AllowHTTP: true, Ports: []uint16{port}})
	for i, host := range append(append([]string{}, hostileIPs...), hostileNames...) {
		resp, err := client.Get(fmt.Sprintf("http://%s:%d/", host, port))
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s was reached", host)
		} else if i < len(hostileIPs) && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", host, err)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("loopback was reached %d times", n)
	}
}

func TestPublicAddressesAreNotRefused(t *testing.T) {
	for _, text := range []string{"1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.32.0.1",
		"2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"} {
		if !Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
	if Public(netip.Addr{}) || Public(netip.MustParseAddr("2606:4700::1111%eth0")) {
		t.Error("no address and an address with a zone are not public")
	}
}

func TestWhatIsSeenBeforeDialling(t *testing.T) {
	_, hits, port := loopback(t, func(http.ResponseWriter, *http.Request) {})
	allow := Options{AllowPrivate: ours}
	for name, target := range map[string]string{
		"http": fmt.Sprintf("http://127.0.0.1:%d/", port), "user": fmt.Sprintf("https://u:p@127.0.0.1:%d/", port),
		"file":   "file:///etc/passwd",
		"gopher": "gopher://127.0.0.1/", "no host": "https:///x",
	} {
		req, err := http.NewRequest(http.MethodPost, target, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(allow).Transport.RoundTrip(req)
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if hits.Load() != 0 {
		t.Error("the server was reached")
	}
}

func TestPortsOfPublicHosts(t *testing.T) {
	o := Options{Ports: []uint16{80, 443}}
	if err := o.control(t.Context(), "tcp4", "1.1.1.1:443", nil); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"1.1.1.1:22", "[2606:4700::1111]:3306", "1.1.1.1", "nonsense"} {
		if err := o.control(t.Context(), "tcp", address, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	var other *httptest.Server
	s, _, _ := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	})
	other, otherHits, _ := loopback(t, func(http.ResponseWriter, *http.Request) {})
	follow := New(Options{AllowHTTP: true, AllowPrivate: ours, SameHostRedirects: true})
	resp, err := follow.Get(s.URL + "/here")
	if err != nil || resp.Request.URL.Path != "/end" {
		t.Errorf("a redirect on the host: %v", err)
	}
	for _, path := range []string{"/away", "/loop"} {
		if _, err := follow.Get(s.URL + path); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", path, err)
		}
	}
	resp, err = New(Options{AllowHTTP: true, AllowPrivate: ours}).Get(s.URL + "/away")
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Errorf("not following: %v", err)
	}
	if otherHits.Load() != 0 {
		t.Error("the other host was reached")
	}
}

func TestBodiesAreBounded(t *testing.T) {
	const limit = 1000
	s, _, _ := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if r.URL.Path == "/bomb" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			io.WriteString(z, strings.Repeat("0", n))
			return
		}
		io.WriteString(w, strings.Repeat("0", n))
	})
	client := New(Options{AllowHTTP: true, AllowPrivate: ours, MaxBody: limit})
	for _, c := range []struct {
		path string
		n    int
		ok   bool
	}{{"/", limit, true}, {"/", limit + 1, false}, {"/bomb", limit, true}, {"/bomb", 1 << 20, false}, {"/", 0, true}} {
		resp, err := client.Get(fmt.Sprintf("%s%s?n=%d", s.URL, c.path, c.n))
		if err != nil {
			t.Fatal(err)
		}
		body, err := ReadBody(resp)
		if c.ok && (err != nil || len(body) != c.n) || !c.ok && (!errors.Is(err, ErrTooLarge) || len(body) > limit) {
			t.Errorf("%s with %d bytes: %d, %v", c.path, c.n, len(body), err)
		}
	}
}

func TestASilentServerIsLeft(t *testing.T) {
	done := make(chan struct{})
	s, _, _ := loopback(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	defer close(done)
	_, err := New(Options{AllowHTTP: true, AllowPrivate: ours, Timeout: 50 * time.Millisecond}).Get(s.URL)
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v, want a time-out", err)
	}
}

func TestUserAgentAndNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://10.0.0.1:1")
	var agent atomic.Value
	s, _, _ := loopback(t, func(_ http.ResponseWriter, r *http.Request) { agent.Store(r.UserAgent()) })
	resp, err := New(Options{AllowHTTP: true, AllowPrivate: ours, UserAgent: "cmsjobs/1"}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if agent.Load() != "cmsjobs/1" {
		t.Errorf("User-Agent %q", agent.Load())
	}
}
