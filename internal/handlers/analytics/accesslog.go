package analytics

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// errSkip says that a line is well-formed and no page view.
var errSkip = errors.New("not a page view")

// parseLine reads one line of an access log: the common or combined format of
// Apache and nginx (with or without a virtual host in front), or Caddy's JSON.
// errSkip means that it is no page view, other errors that it is no such line.
func parseLine(line []byte) (View, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return View{}, errSkip
	}
	if line[0] == '{' {
		return parseCaddy(line)
	}
	return parseCombined(string(line))
}

// caddyLine is the part of Caddy's access log that counts.
type caddyLine struct {
	TS      json.Number `json:"ts"`
	Status  int         `json:"status"`
	Request struct {
		RemoteIP string      `json:"remote_ip"`
		ClientIP string      `json:"client_ip"`
		Method   string      `json:"method"`
		Host     string      `json:"host"`
		URI      string      `json:"uri"`
		Headers  http.Header `json:"headers"`
	} `json:"request"`
}

func parseCaddy(line []byte) (View, error) {
	var c caddyLine
	if err := json.Unmarshal(line, &c); err != nil || c.Request.URI == "" {
		return View{}, errors.New("not a line of an access log")
	}
	seconds, err := c.TS.Float64()
	if err != nil || seconds <= 0 || seconds > 1e11 {
		return View{}, errors.New("the line has no time")
	}
	v := View{At: time.UnixMilli(int64(seconds * 1000)), Host: nameOnly(c.Request.Host), Address: c.Request.ClientIP,
		Referrer: c.Request.Headers.Get("Referer"), Agent: c.Request.Headers.Get("User-Agent"),
		Prefetch: prefetched(c.Request.Headers)}
	if v.Address == "" {
		v.Address = c.Request.RemoteIP
	}
	return pageView(v, c.Request.Method, c.Request.URI, c.Status)
}

// nameOnly leaves out a host that is an address: clients that call the server
// by it, or write any other into the header.
func nameOnly(host string) string {
	if hostName.MatchString(host) {
		return host
	}
	return ""
}

// stamped finds the time of a line. No server writes a quote into a user's name
// (nginx: \x22, Apache: \"), so that the first time before a quote is the
// server's own.
var stamped = regexp.MustCompile(` \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "`)

// hostName is what may stand in front as a virtual host: a name, with a port or
// without, not an address.
var hostName = regexp.MustCompile(`^(?i:[a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)*[a-z]([a-z0-9-]*[a-z0-9])?\.?(:\d{1,5})?$`)

// parseCombined reads: [host] address ident user [time] "request" status size ["referrer" "agent"] …
func parseCombined(line string) (View, error) {
	bad := errors.New("not a line of an access log")
	found := stamped.FindStringSubmatchIndex(line)
	if found == nil {
		return View{}, bad
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", line[found[2]:found[3]])
	if err != nil {
		return View{}, bad
	}
	request, rest, err := quotedField(line[found[1]-1:])
	if err != nil {
		return View{}, bad
	}
	v := View{At: at}
	if v.Host, v.Address, err = lineHead(line[:found[0]]); err != nil {
		return View{}, bad
	}
	numbers := strings.SplitN(strings.TrimSpace(rest), " ", 3)
	status, err := strconv.Atoi(numbers[0])
	if err != nil {
		return View{}, bad
	}
	if len(numbers) == 3 {
		if v.Referrer, rest, err = quotedField(numbers[2]); err == nil {
			v.Agent, _, _ = quotedField(strings.TrimSpace(rest)) // the common format has none
		}
	}
	if v.Referrer == "-" {
		v.Referrer = ""
	}
	method, uri, ok := strings.Cut(request, " ")
	if !ok {
		return View{}, errSkip // what scanners send
	}
	uri, _, _ = strings.Cut(uri, " ")
	return pageView(v, method, uri, status)
}

// lineHead reads what stands before the time. The user's name may hold blanks
// and anything else that a client chose: it must not be taken for the host or
// the address. An address in the host's place is the server's own.
func lineHead(head string) (host, address string, err error) {
	fields := strings.Fields(head)
	if len(fields) < 2 {
		if len(fields) == 1 && isAddress(fields[0]) {
			return "", fields[0], nil
		}
		return "", "", errors.New("no address")
	}
	switch {
	case isAddress(fields[1]) && hostName.MatchString(fields[0]):
		return fields[0], fields[1], nil
	case isAddress(fields[1]) && isAddress(fields[0]):
		return "", fields[1], nil
	case isAddress(fields[0]):
		return "", fields[0], nil
	case hostName.MatchString(fields[0]) && fields[1] == "-": // a server that looks up its visitors' names
		return "", fields[0], nil
	}
	return "", "", errors.New("no address")
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return err == nil
}

// quotedField takes a "…" with \" inside from the front of s.
func quotedField(s string) (field, rest string, err error) {
	if len(s) == 0 || s[0] != '"' {
		return "", s, errors.New("no quote")
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return strings.ReplaceAll(s[1:i], `\"`, `"`), s[i+1:], nil
		}
	}
	return "", s, errors.New("the quote is not closed")
}

// isAsset knows what pages are made of by its name.
func isAsset(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".css", ".js", ".mjs", ".map", ".json", ".xml", ".txt", ".ico", ".png", ".jpg", ".jpeg", ".gif", ".webp",
		".avif", ".svg", ".bmp",
		".woff", ".woff2", ".ttf", ".otf", ".eot", ".mp4", ".webm", ".mp3", ".ogg", ".pdf", ".zip", ".gz", ".rar",
		".wasm", ".webmanifest":
		return true
	}
	return false
}

// pageView keeps successful GETs of pages.
func pageView(v View, method, uri string, status int) (View, error) {
	if method != http.MethodGet || status < 200 || status >= 300 && status != http.StatusNotModified {
		return View{}, errSkip
	}
	if i := strings.Index(uri, "://"); i >= 0 { // the absolute form that proxies get
		if _, after, ok := strings.Cut(uri[i+3:], "/"); ok {
			uri = "/" + after
		}
	}
	v.Path, v.Query, _ = strings.Cut(uri, "?")
	if v.Path == "" || v.Path[0] != '/' || isAsset(v.Path) {
		return View{}, errSkip
	}
	return v, nil
}
