package analytics

import (
	"crypto/rand"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// The kinds of rows. Only ordinary views and events are rolled up.
const (
	kindView  = "view"
	kindEvent = "event"
	kindBot   = "bot"
	kindSpam  = "spam"
)

// View is one page view, or an event on a page, as a collector or an importer saw it,
// before anything personal is hashed away.
type View struct {
	At       time.Time
	Host     string // of the page
	Path     string
	Event    string // its name; "" is a view
	Query    string // for campaigns
	Referrer string // whole URL, or ""
	Address  string // IP; hashed, never stored
	Agent    string
	Prefetch bool    // the browser only guessed that the page will be wanted
	Nonce    [8]byte // tells views of one millisecond apart; zero means random
}

// row is a view as it is stored.
type row struct {
	day      string
	visitor  [16]byte
	at       int64 // Unix milliseconds
	nonce    [8]byte
	site     string
	path     string
	referrer string
	device   string
	browser  string
	os       string
	country  string
	campaign string
	term     string
	content  string
	event    string
	kind     string
}

func randomNonce() (n [8]byte) {
	_, _ = rand.Read(n[:]) // crypto/rand never fails (Go 1.24)
	return n
}

// clean makes s fit a column of n characters: valid UTF-8, no control
// characters.
func clean(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}

// cleanPath is the page without query and fragment, with one slash in front
// and, but for the root, none behind.
func cleanPath(p string) string {
	if i := strings.IndexAny(p, "?#"); i >= 0 {
		p = p[:i]
	}
	if decoded, err := url.PathUnescape(p); err == nil {
		p = decoded
	}
	p = "/" + strings.Trim(clean(p, 500), "/")
	if utf8.RuneCountInString(p) > 500 {
		p = string([]rune(p)[:500])
	}
	return p
}

// campaign reads the utm parameters of a query. Its name is source / medium / name.
func campaign(query string) (name, term, content string) {
	if !strings.Contains(query, "utm_") {
		return "", "", ""
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", "", ""
	}
	parts := []string{values.Get("utm_source"), values.Get("utm_medium"), values.Get("utm_campaign")}
	return clean(strings.TrimRight(strings.Join(parts, " / "), "/ "), 191), clean(values.Get("utm_term"), 191),
		clean(values.Get("utm_content"), 191)
}

// cleanHost is a host's name in lower case, without port and "www.".
func cleanHost(h string) string {
	h = strings.ToLower(strings.TrimSpace(h))
	if i := strings.LastIndexByte(h, ':'); i > strings.LastIndexByte(h, ']') {
		h = h[:i]
	}
	return clean(strings.TrimPrefix(strings.TrimSuffix(h, "."), "www."), 100)
}
