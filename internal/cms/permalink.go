package cms

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Permalinks makes the addresses that the CMS itself shows:
// root/[locale/][prefix/]key[.ending]. It holds what the settings said when it
// was made: make one a job. It is not for several goroutines at once.
type Permalinks struct {
	// Root is the site's address without a slash at the end.
	Root string
	// Ending is "" or for example ".html".
	Ending string
	// Homepage is the id of the page that is shown at Root, "" when none is.
	Homepage string
	// Languages of the site, the default first; empty on a site without the
	// language plugin.
	Languages []Language

	date        *strings.Replacer
	hideDefault bool
	locales     map[string]string
	scratch     []byte
}

// Permalinks reads what addresses are made of. now is for the CMS's
// %%year%%, %%month%% and %%day%% in prefixes, which mean today.
func (s *Site) Permalinks(ctx context.Context, now time.Time) (*Permalinks, error) {
	settings, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	zone, err := settings.zone(s.FallbackZone)
	if err != nil {
		return nil, err
	}
	root := s.URL()
	if root == "" {
		return nil, errors.New("the site's address is not known: set APP_URL in the CMS's .env")
	}
	languages, err := s.Languages(ctx)
	if err != nil {
		return nil, err
	}
	p := &Permalinks{Root: root, Homepage: settings.homepage(), Languages: languages,
		hideDefault: settings.String("language_hide_default", "1") != "0",
		locales:     map[string]string{}, date: todays(now.In(zone))}
	if ending := settings.String("public_single_ending_url", s.Env.String("PUBLIC_SINGLE_ENDING_URL",
		"")); ending != "" {
		p.Ending = "." + strings.TrimPrefix(ending, ".")
	}
	for _, l := range languages {
		p.locales[l.Code] = l.Locale
	}
	return p, nil
}

// todays replaces what a prefix may hold. The CMS writes the month for
// %%day%%, and its addresses are what counts here.
func todays(now time.Time) *strings.Replacer {
	month := now.Format("01")
	return strings.NewReplacer("%%year%%", now.Format("2006"), "%%month%%", month, "%%day%%", month)
}

// homepage is the page that the theme shows at the root.
func (s Settings) homepage() string {
	return s.String(fmt.Sprintf("theme-%s-homepage_id", s["theme"]), s.String("show_on_front", ""))
}

// prefixOf is what the permalink settings say for a model.
func (s Settings) prefixOf(m Model) string {
	key := "permalink-" + strings.ToLower(strings.ReplaceAll(m.Class, `\`, "-"))
	if value, there := s[key]; there {
		return value
	}
	return m.Prefix
}

// Today is what the CMS's date words in prefixes mean now.
func (p *Permalinks) Today() string { return p.date.Replace("%%year%%-%%month%%") }

// URL is where an item is, in the language that its row is written in.
func (p *Permalinks) URL(i *Item) string {
	if i.Model.mapped() {
		return p.Root + "/" + EscapePath(strings.Trim(i.Key, "/"))
	}
	return p.of(i.Model.Name == "pages" && i.ID == p.Homepage, i.Language, i.Prefix, i.Key)
}

// VersionURL is where an item's other language is.
func (p *Permalinks) VersionURL(i *Item, v Version) string {
	id := i.ID
	if v.ID != "" {
		id = v.ID
	}
	return p.of(i.Model.Name == "pages" && id == p.Homepage, v.Language, v.Prefix, v.Key)
}

// Home is the root in a language ("" is the default one).
func (p *Permalinks) Home(language string) string { return p.of(true, language, "", "") }

func (p *Permalinks) of(home bool, language, prefix, key string) string {
	b := append(p.scratch[:0], p.Root...)
	if locale := p.segment(language); locale != "" {
		b = append(append(b, '/'), locale...)
	}
	if !home {
		if strings.Contains(prefix, "%%") {
			prefix = p.date.Replace(prefix)
		}
		if prefix = strings.Trim(prefix, "/"); prefix != "" {
			b = appendPath(append(b, '/'), prefix)
		}
		b = appendPath(append(b, '/'), strings.Trim(key, "/"))
		b = append(b, p.Ending...)
	}
	p.scratch = b
	return string(b)
}

// segment is the language's part of a path.
func (p *Permalinks) segment(language string) string {
	if len(p.Languages) < 2 {
		return ""
	}
	if language == "" {
		language = p.Languages[0].Code
	}
	if language == p.Languages[0].Code && p.hideDefault {
		return ""
	}
	return p.locales[language]
}

// EscapePath writes a path as it stands in an address.
func EscapePath(path string) string { return string(appendPath(nil, path)) }

const hex = "0123456789ABCDEF"

// pathBytes are what RFC 3986 §3.3 allows in a path: unreserved characters,
// sub-delims, ":", "@" and "/".
var pathBytes = byteSet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/")

func byteSet(members string) (set [256]bool) {
	for i := range len(members) {
		set[members[i]] = true
	}
	return set
}

func appendPath(b []byte, path string) []byte {
	start := 0 // of what is not yet copied: nearly always all of it
	for i := range len(path) {
		if c := path[i]; !pathBytes[c] {
			b = append(append(b, path[start:i]...), '%', hex[c>>4], hex[c&15])
			start = i + 1
		}
	}
	return append(b, path[start:]...)
}
