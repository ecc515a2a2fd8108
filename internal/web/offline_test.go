package web_test

import (
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestALivePageSaysThatTheServiceIsGone cuts a page off from its service: it
// says so without being touched, and comes back by itself with what is new.
func TestALivePageSaysThatTheServiceIsGone(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	b := newBrowser(t, s)
	direct, err := url.Parse(b.base)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(direct.Port())
	if err != nil {
		t.Fatal(err)
	}
	proxy := jobstest.NewProxy(t, port)
	b.base = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(proxy.Port))
	b.signIn("admin")
	b.open("/admin/jobs")
	b.until(`document.getElementById("offline").hidden`)

	proxy.Refuse(true)
	proxy.Cut()
	b.until(`!document.getElementById("offline").hidden`)
	s.enqueue(`{"type":"cache.clear","payload":{}}`)
	if eval[bool](b, `document.body.innerText.includes("cache.clear")`) {
		t.Fatal("the page shows what it cannot know: it is not cut off")
	}
	proxy.Refuse(false)
	b.until(`document.getElementById("offline").hidden`)
	b.sees("cache.clear")
}
