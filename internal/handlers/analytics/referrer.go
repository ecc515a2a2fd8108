package analytics

import (
	"bufio"
	_ "embed"
	"net/url"
	"regexp"
	"strings"
)

// referrerGroups puts hosts that are one source under one name, and names their channel.
var referrerGroups = []struct{ suffix, name, channel string }{
	{"mail.", "Mail", channelMail},
	{"com.google.android.gm", "Mail", channelMail},
	{"inbox.google.com", "Mail", channelMail},
	{"org.telegram.messenger", "Telegram", channelSocial},
	{"com.google.android.googlequicksearchbox", "Google", channelSearch},
	{"google.", "Google", channelSearch},
	{"bing.com", "Bing", channelSearch},
	{"duckduckgo.com", "DuckDuckGo", channelSearch},
	{"yahoo.", "Yahoo", channelSearch},
	{"yandex.", "Yandex", channelSearch},
	{"baidu.com", "Baidu", channelSearch},
	{"ecosia.org", "Ecosia", channelSearch},
	{"qwant.com", "Qwant", channelSearch},
	{"startpage.com", "Startpage", channelSearch},
	{"coccoc.com", "Cốc Cốc", channelSearch},
	{"search.brave.com", "Brave", channelSearch},
	{"kagi.com", "Kagi", channelSearch},
	{"facebook.com", "Facebook", channelSocial},
	{"fb.me", "Facebook", channelSocial},
	{"instagram.com", "Instagram", channelSocial},
	{"t.co", "X", channelSocial},
	{"twitter.com", "X", channelSocial},
	{"x.com", "X", channelSocial},
	{"linkedin.com", "LinkedIn", channelSocial},
	{"lnkd.in", "LinkedIn", channelSocial},
	{"reddit.com", "Reddit", channelSocial},
	{"youtube.com", "YouTube", channelSocial},
	{"youtu.be", "YouTube", channelSocial},
	{"pinterest.", "Pinterest", channelSocial},
	{"tiktok.com", "TikTok", channelSocial},
	{"zalo.me", "Zalo", channelSocial},
	{"t.me", "Telegram", channelSocial},
	{"telegram.org", "Telegram", channelSocial},
	{"news.ycombinator.com", "Hacker News", channelSocial},
	{"github.com", "GitHub", channelReferral},
	{"chatgpt.com", "ChatGPT", channelReferral},
	{"perplexity.ai", "Perplexity", channelReferral},
	{"claude.ai", "Claude", channelReferral},
	{"wikipedia.org", "Wikipedia", channelReferral},
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
