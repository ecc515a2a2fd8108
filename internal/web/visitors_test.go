package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The log has no address of the site's visitors, or, by choice, their network.
func TestTheLogHasNoVisitorsAddress(t *testing.T) {
	for _, c := range []struct {
		name     string
		shorten  bool
		networks []string
	}{{"dropped", false, nil}, {"shortened", true, []string{`network=203.0.113.0 `, `network=2001:db8:7::`}}} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			s := newSite(t, jobstest.SQLite, func(w *config) {
				w.ShortenVisitors = c.shorten
				w.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
				w.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				w.Mount = map[string]http.Handler{
					"/collect": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.ContentLength == 0 {
							w.WriteHeader(http.StatusInternalServerError)
						}
					})}
			})
			for _, address := range []string{"203.0.113.77", "2001:db8:7:8::9", "::ffff:203.0.113.78", "nonsense"} {
				for _, text := range []string{"{}", ""} {
					s.do("POST", "/collect", text, header("X-Forwarded-For", address))
				}
			}
			text := log.String() + " "
			if n := strings.Count(text, "path=/collect"); n != 8 {
				t.Fatalf("%d requests are in the log:\n%s", n, text)
			}
			for _, address := range []string{"203.0.113.77", "203.0.113.78", "2001:db8:7:8", "127.0.0.1"} {
				if strings.Contains(text, address) {
					t.Errorf("%s is in the log", address)
				}
			}
			for _, network := range c.networks {
				if !strings.Contains(strings.ReplaceAll(text, "\n", " "), network) {
					t.Errorf("%s is not in the log:\n%s", network, text)
				}
			}
			if !c.shorten && strings.Contains(text, "network=") {
				t.Errorf("the log has a network:\n%s", text)
			}
		})
	}
}
