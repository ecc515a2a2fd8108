package redact

import (
	"net/netip"
	"regexp"
	"strings"
	"unicode"
)

// Mask stands where a secret was.
const Mask = "•••"

// Audience is who reads.
type Audience int

// The audiences.
const (
	// Readers may look and nothing else.
	Readers Audience = iota
	// Operators may run the service: they see what jobs say, and no secrets.
	Operators
)

// pattern is one shape of a secret. Its replacement keeps what is no secret.
type pattern struct {
	// hint must be in the text, in lower case, for the pattern to be tried.
	hint  string
	shape *regexp.Regexp
	with  string
}

var patterns = []pattern{
	{"private key",
		regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`), Mask},
	// What package encryption stored.
	{"age:ywdl", regexp.MustCompile(`\bage:YWdlLWVuY3J5cHRpb24ub3JnL3Yx[A-Za-z0-9+/=]*`), Mask},
	{"age-secret-key", regexp.MustCompile(`(?i)AGE-SECRET-KEY-1[0-9A-Z]+`), Mask},
	// Places whose path is the secret.
	{"hooks.slack.com", regexp.MustCompile(`(?i)(hooks\.slack\.com/)[^\s"'<>\\]+`), "${1}" + Mask},
	{"webhooks/", regexp.MustCompile(`(?i)(/api/webhooks/)[^\s"'<>\\]+`), "${1}" + Mask},
	{"/bot", regexp.MustCompile(`(?i)(/bot)\d+:[\w-]+`), "${1}" + Mask},
	{"reset", regexp.MustCompile(`(?i)(/(?:password/)?reset(?:-password)?/)[^\s"'<>?#/\\]{8,}`), "${1}" + Mask},
	{"/", regexp.MustCompile(
		`(?i)(/(?:verify|activate|activation|confirm|invitation|invite|magic(?:-link)?|unsubscribe|impersonate)/)[^\s"'<>?#/\\]{16,}`), "${1}" + Mask},
	// Users of addresses: scheme://user:password@host, and user:password@tcp(host).
	{"://", regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^/\s"'<>?#\\]*@`), "${1}" + Mask + "@"},
	{"://", regexp.MustCompile(
		`(?i)([a-z][a-z0-9+.-]*://)[^/\s:@"'<>\\]*:[^\s"'<>@\\]*[^\s"'<>@\\0-9/][^\s"'<>@\\]*@`), "${1}" + Mask + "@"},
	{"(", regexp.MustCompile(`[^\s"'<>:@/()]+:[^\s"'<>]*@(tcp|unix|udp)\(`), Mask + "@${1}("},
	// What PHP serialized.
	{`";s:`,
		regexp.MustCompile(`(?i)("[^"]{0,80}(?:passw|secret|token|pwd|api_?key|credential)[^"]{0,80}";s:\d+:")[^"]*`),
		"${1}" + Mask},
	// Headers, to the end of their line.
	{"authorization", regexp.MustCompile(`(?i)\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?)[^\r\n"']+`),
		"${1}" + Mask},
	{"cookie", regexp.MustCompile(`(?i)\b((?:set-)?cookie["']?\s*[:=]\s*["']?)[^\r\n"']+`), "${1}" + Mask},
	{"bearer", regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}" + Mask},
	{"basic", regexp.MustCompile(`\b([Bb]asic\s+)[A-Za-z0-9+/]{7,}(?:=|[A-Za-z]\d|\d[A-Za-z])[A-Za-z0-9+/=]*`),
		"${1}" + Mask},
	// Secrets that are known by their own shape.
	{"eyj", regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?`), Mask},
	{"whsec_", regexp.MustCompile(`\bwhsec_[A-Za-z0-9+/=_-]+`), Mask},
	{"cmsj_", regexp.MustCompile(`\bcmsj_[\w.-]+`), Mask},
	{"_", regexp.MustCompile(`\b(?:sk|pk|rk)_(?:live|test)_\w+|\bgh[pousr]_\w{16,}|\bgithub_pat_\w+|\bglpat-[\w-]+`),
		Mask},
	{"xox", regexp.MustCompile(`\bxox[abeprs]-[\w-]+`), Mask},
	{"akia", regexp.MustCompile(`\bAKIA[0-9A-Z]{12,}`), Mask},
	{"asia", regexp.MustCompile(`\bASIA[0-9A-Z]{12,}`), Mask},
	{"aiza", regexp.MustCompile(`\bAIza[\w-]{20,}`), Mask},
	{"base64:", regexp.MustCompile(`\bbase64:[A-Za-z0-9+/=]{24,}`), Mask},
}

// named is a name and what stands before its value: password=, "token": , 'key' =>.
var named = regexp.MustCompile(`([\p{L}\p{N}_.\[\]-]{1,80})\\*["']?\]?\s*(?:=>|[:=])[ \t]*`)

// queryKeys are secret in the query of an address only.
var queryKeys = regexp.MustCompile(`(?i)([?&](?:key|code|hash|ticket|access|sig|hmac)=)[^&\s"'<>#\\]+`)

// plainValues say something about a secret without being one.
var plainValues = []string{"yes", "no", "true", "false", "null", "none", "nil", "empty", "missing", "required",
	"invalid", "wrong", "unknown", "expired", "{}", "[]", "0", "1", "string"}

// Text hides the secrets in a text: what stands behind names of secrets, users
// of addresses, tokens. Invalid UTF-8 becomes U+FFFD.
func Text(text string) string {
	if PlainWord(text) {
		return text
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	lower := strings.ToLower(text)
	for _, p := range patterns {
		if strings.Contains(lower, p.hint) {
			text = p.shape.ReplaceAllString(text, p.with)
		}
	}
	if strings.ContainsAny(text, "=:") {
		text = hidePairs(text)
	}
	if strings.Contains(text, "=") {
		text = queryKeys.ReplaceAllString(text, "${1}"+Mask)
	}
	return text
}

// PlainWord says that Text finds nothing in a text, by a quick look: names of types and
// queues, ids and words, which most values of log lines are.
func PlainWord(text string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return !strings.Contains(text, "xox") && !strings.Contains(text, "age-secret")
}

// hidePairs hides values behind names of secrets. It reads the text once.
func hidePairs(text string) string {
	var out strings.Builder
	done := 0
	for _, m := range named.FindAllStringSubmatchIndex(text, -1) {
		if m[0] < done || !SecretKey(lastWord(text[m[2]:m[3]])) {
			continue
		}
		value := valueAt(text[m[1]:])
		if plain(value) {
			continue
		}
		out.WriteString(text[done:m[1]])
		out.WriteString(quotedMask(value))
		done = m[1] + len(value)
	}
	out.WriteString(text[done:])
	return out.String()
}

// valueAt is the value at the beginning of a text: up to its closing quote, or
// a word.
func valueAt(text string) string {
	head := len(text) - len(strings.TrimLeft(text, `\`))
	if head == len(text) || text[head] != '"' && text[head] != '\'' {
		if end := strings.IndexAny(text, " \t\r\n&,;\"'<>(){}|\\"); end >= 0 {
			return text[:end]
		}
		return text
	}
	quote := text[:head+1] // with the backslashes of JSON in JSON
	for at := head + 1; at < len(text); at++ {
		switch {
		case strings.HasPrefix(text[at:], quote):
			return text[:at+len(quote)]
		case text[at] == '\\' && head == 0:
			at++ // what it escapes
		}
	}
	return text
}

// lastWord is the key that a path ends in: user.password, data[token].
func lastWord(name string) string {
	name = strings.Trim(name, "[].-")
	if i := strings.LastIndexAny(name, ".["); i >= 0 {
		return name[i+1:]
	}
	return name
}

func plain(value string) bool {
	value = strings.ToLower(strings.TrimFunc(value, func(r rune) bool { return unicode.IsPunct(r) && r != '•' }))
	for _, p := range plainValues {
		if value == p || value == "" {
			return true
		}
	}
	return value == Mask
}

// quotedMask is the mask in the quotes that the value had.
func quotedMask(value string) string {
	head := strings.TrimLeft(value, `\`)
	if head == "" || head[0] != '"' && head[0] != '\'' {
		return Mask
	}
	mark := value[:len(value)-len(head)+1]
	return mark + Mask + mark
}

// address is a text that may be an IP address.
var address = regexp.MustCompile(
	`\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%\w+)?\]|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}`)

// TextFor is Text for an audience: readers do not learn addresses of the
// network inside.
func TextFor(to Audience, text string) string {
	text = Text(text)
	if to >= Operators || !strings.ContainsAny(text, ".:") {
		return text
	}
	return address.ReplaceAllStringFunc(text, func(found string) string {
		ip, err := netip.ParseAddr(strings.Trim(found, "[]"))
		if err != nil || !inside(ip.Unmap()) {
			return found
		}
		return "(internal address)"
	})
}

var shared = netip.MustParsePrefix("100.64.0.0/10") // of carriers

func inside(ip netip.Addr) bool {
	return ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || shared.Contains(ip)
}

// Address is a URL of which readers see only where it leads: its path and query
// may be its secret.
func Address(to Audience, address string) string {
	text := TextFor(to, address)
	if to >= Operators {
		return text
	}
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return Mask
	}
	host, path, _ := strings.Cut(rest, "/")
	host, query, _ := strings.Cut(host, "?")
	if path == "" && query == "" {
		return text
	}
	return scheme + "://" + host + "/" + Mask
}
