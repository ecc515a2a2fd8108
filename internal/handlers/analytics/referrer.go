package analytics

import (
	"bufio"
	_ "embed"
	"net/url"
	"regexp"
	"strings"
)

// referrerGroups puts hosts that are one source under one name.
var referrerGroups = []struct{ suffix, name string }{
	{"mail.", "Mail"}, {"com.google.android.gm", "Mail"}, {"inbox.google.com", "Mail"},
	{"org.telegram.messenger", "Telegram"}, {"com.google.android.googlequicksearchbox", "Google"},
	{"google.", "Google"}, {"bing.com", "Bing"}, {"duckduckgo.com", "DuckDuckGo"}, {"yahoo.", "Yahoo"},
	{"yandex.", "Yandex"},
	{"baidu.com", "Baidu"}, {"ecosia.org", "Ecosia"}, {"qwant.com", "Qwant"}, {"startpage.com", "Startpage"},
	{"coccoc.com", "Cốc Cốc"},
	{"search.brave.com", "Brave"}, {"kagi.com", "Kagi"}, {"facebook.com", "Facebook"}, {"fb.me", "Facebook"},
	{"instagram.com", "Instagram"},
	{"t.co", "X"}, {"twitter.com", "X"}, {"x.com", "X"}, {"linkedin.com", "LinkedIn"}, {"lnkd.in", "LinkedIn"},
	{"reddit.com", "Reddit"},
	{"youtube.com", "YouTube"}, {"youtu.be", "YouTube"}, {"pinterest.", "Pinterest"}, {"tiktok.com", "TikTok"},
	{"zalo.me", "Zalo"},
	{"t.me", "Telegram"}, {"telegram.org", "Telegram"}, {"news.ycombinator.com", "Hacker News"},
	{"github.com", "GitHub"},
	{"chatgpt.com", "ChatGPT"}, {"perplexity.ai", "Perplexity"}, {"claude.ai", "Claude"},
	{"wikipedia.org", "Wikipedia"},
}

// referrerGroup names where a visitor came from: a well-known source, else the
// host. It is "" for none and for the site itself.
func referrerGroup(referrer, site string) string {
	if referrer == "" {
		return ""
	}
	u, err := url.Parse(referrer)
	if err != nil {
		return ""
	}
	host := cleanHost(u.Host)
	if host == "" || host == site || strings.HasSuffix(host, "."+site) {
		return ""
	}
	for _, g := range referrerGroups {
		if matchesGroup(host, g.suffix) {
			return g.name
		}
	}
	return clean(host, 191)
}

// ending is what follows the name in "google.": a top-level domain, or a
// country's second level (co.uk, com.vn).
var ending = regexp.MustCompile(`^([a-z]{2,}|(com?|net|org|ne|or)\.[a-z]{2})$`)

// matchesGroup: "google." is google.tld and its sub-domains, "mail." any host
// that begins so, "bing.com" that domain and its sub-domains.
func matchesGroup(host, suffix string) bool {
	if suffix == "mail." {
		return strings.HasPrefix(host, suffix)
	}
	if strings.HasSuffix(suffix, ".") {
		at := strings.LastIndex("."+host, "."+suffix)
		return at >= 0 && ending.MatchString(host[at+len(suffix):])
	}
	return host == suffix || strings.HasSuffix(host, "."+suffix)
}

//go:embed spam.txt
var spamList string

// spamHosts are domains that write themselves into referrers to be visited.
type spamHosts map[string]bool

func newSpamHosts(own []string) spamHosts {
	s := spamHosts{}
	lines := bufio.NewScanner(strings.NewReader(spamList))
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
			s[line] = true
		}
	}
	for _, host := range own {
		s[cleanHost(host)] = true
	}
	return s
}

// has knows the host and every domain above it.
func (s spamHosts) has(referrer string) bool {
	u, err := url.Parse(referrer)
	if err != nil || u.Host == "" {
		return false
	}
	for host := cleanHost(u.Host); host != ""; {
		if s[host] {
			return true
		}
		_, parent, found := strings.Cut(host, ".")
		if !found {
			return false
		}
		host = parent
	}
	return false
}
