package analytics

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// nested is how GeoLite2 and DB-IP write a country.
func nested(field, code string) map[string]any {
	return map[string]any{field: map[string]any{"iso_code": code, "names": map[string]any{"en": "a land"}}}
}

func countries(t *testing.T, networks map[string]map[string]any) *Countries {
	t.Helper()
	c, err := OpenCountries(jobstest.Countries(t, networks))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCountriesAreFoundInFilesOfEveryMaker(t *testing.T) {
	c := countries(t, map[string]map[string]any{
		"203.0.113.0/25":   nested("country", "VN"),            // GeoLite2, DB-IP
		"203.0.113.128/26": {"country_code": "DE"},             // ip-location-db
		"203.0.113.192/26": {"country": "FR"},                  // IPinfo
		"198.51.100.0/24":  nested("registered_country", "US"), // only who registered it is known
		"192.0.2.0/25":     {"country_code": "Vietnam"},        // no code
		"192.0.2.128/25":   {"country": 704},                   // of another type
		"2001:db8:1::/48":  nested("country", "JP"),
	})
	for address, want := range map[string]string{
		"203.0.113.7": "VN", "::ffff:203.0.113.7": "VN", "203.0.113.130": "DE", "203.0.113.200": "FR",
		"198.51.100.1": "US",
		"192.0.2.1":    "", "192.0.2.130": "", "2001:db8:1::5": "JP", "2001:db8:2::5": "", "10.0.0.1": "",
	} {
		if got := c.Country(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is in %q, want %q", address, got, want)
		}
	}
	if got := c.Country(netip.Addr{}); got != "" {
		t.Errorf("no address is in %q", got)
	}
}

func TestAFileThatIsNoDatabaseOfCountriesIsNamed(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.mmdb")
	if err := os.WriteFile(bad, []byte("an HTML page that says: sign in to download"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, bad + ".gone"} {
		if _, err := OpenCountries(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestViewsAreCountedByCountry goes the whole way, from both sources of
// addresses to the figures and the report.
func TestViewsAreCountedByCountry(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		h.Countries = countries(t, map[string]map[string]any{"203.0.113.0/24": nested("country", "VN"),
			"198.51.100.0/24": nested("country", "DE")})
		c := h.NewCollector()
		for _, address := range []string{"203.0.113.7:1", "203.0.113.7:2", "203.0.113.8:1", "192.0.2.1:1"} {
			if code := send(c, `{"u":"https://example.com/a"}`, func(r *http.Request) {
				r.RemoteAddr = address
			}); code != 204 {
				t.Fatalf("%s: %d", address, code)
			}
		}
		if err := c.last(nil); err != nil {
			t.Fatal(err)
		}
		log := `198.51.100.9 - - [10/Mar/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 512 "-" "` + firefox + `"` + "\n" +
			`203.0.113.9 - - [10/Mar/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 512 "-" "` + firefox + `"` + "\n"
		if done, err := h.Import(ctx, Log{Name: "access.log", Host: "example.com"}, strings.NewReader(log),
			nil); err != nil || done.Views != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		want := []string{"2026-03-10|example.com|country|DE|1|1|1", "2026-03-10|example.com|country|VN|4|3|3",
			"2026-03-10|example.com|country||1|1|1"}
		got := slices.DeleteFunc(h.dump(t), func(line string) bool { return !strings.Contains(line, "|country|") })
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		report, err := h.Report(ctx, ReportQuery{Since: "2026-03-10", Until: "2026-03-10", Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(report.Lists, func(l List) bool { return l.Title == "Countries" })
		if at < 0 || len(report.Lists[at].Items) != 3 || report.Lists[at].Items[0].Name != "VN" ||
			counted(report.Lists[at].Items[0].Figures) != [3]int64{4, 3, 3} {
			t.Errorf("the report says %+v", report.Lists)
		}
	})
}
