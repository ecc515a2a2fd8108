package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Fault is one thing that is wrong with the configuration.
type Fault struct {
	Path    string `json:"path"`
	Problem string `json:"problem"`
	Origin  string `json:"origin,omitempty"` // where the value was said
}

func (f Fault) String() string {
	text := f.Problem
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Origin != "" {
		text += " (" + f.Origin + ")"
	}
	return text
}

// Faults are all that is wrong, reported at once.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	if len(f) == 1 {
		return "the configuration has a fault: " + lines[0]
	}
	return fmt.Sprintf("the configuration has %d faults:\n  - %s", len(f), strings.Join(lines, "\n  - "))
}

// report collects faults while values are checked.
type report struct {
	faults  Faults
	origins map[string]string
	site    string // whose configuration it is
}

func (r *report) add(path, format string, args ...any) {
	f := Fault{Path: r.pathOf(path), Problem: fmt.Sprintf(format, args...), Origin: originOf(r.origins, path)}
	if !slices.Contains(r.faults, f) {
		r.faults = append(r.faults, f)
	}
}

// originOf is where a path was said, or else a key below it; "" by nobody.
func originOf(origins map[string]string, path string) string {
	if origin, said := origins[path]; said {
		return origin
	}
	for _, said := range slices.Sorted(maps.Keys(origins)) {
		if strings.HasPrefix(said, path+slash) {
			return origins[said]
		}
	}
	return ""
}

func (r *report) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		r.add(path, "%q is none of %s", value, strings.Join(allowed, ", "))
	}
}

func (r *report) atLeast(path string, value, least int) {
	if value < least {
		r.add(path, "%d is too small: at least %d", value, least)
	}
}

func (r *report) between(path string, value, least, most int) {
	if value < least || value > most {
		r.add(path, "%d is not between %d and %d", value, least, most)
	}
}

// share wants a part of the whole.
func (r *report) share(path string, value float64) {
	if !(value >= 0 && value <= 1) { // NaN is none either
		r.add(path, "%v is not between 0 and 1", value)
	}
}

func (r *report) atLeastFor(path string, value, least time.Duration) {
	if value < least {
		r.add(path, "%s is too short: at least %s", formatDuration(value), formatDuration(least))
	}
}

// webURL wants an http(s) address; an empty one is nobody's fault.
func (r *report) webURL(path, value string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		r.add(path, "%q is not an http or https address", value)
	}
}

// address wants host:port; an empty one is nobody's fault.
func (r *report) address(path, value string) {
	if value == "" {
		return
	}
	if _, _, err := net.SplitHostPort(value); err != nil {
		r.add(path, "%q is not host:port, for example 127.0.0.1:8090", value)
	}
}

// zone wants a name of the time-zone database; an empty one is nobody's fault.
func (r *report) zone(path, value string) {
	if _, err := time.LoadLocation(value); err != nil {
		r.add(path, "%q is no time zone; write for example UTC or Europe/Berlin", value)
	}
}

// networks checks a list of address ranges.
func (r *report) networks(path string, list []string) {
	for _, network := range list {
		if _, err := netip.ParsePrefix(network); err != nil {
			r.add(path, "%q is no network, for example 10.1.0.0/16", network)
		}
	}
}

// networks are the ranges as values; what is none was reported by check.
func networks(list []string) []netip.Prefix {
	var ranges []netip.Prefix
	for _, network := range list {
		if p, err := netip.ParsePrefix(network); err == nil {
			ranges = append(ranges, p)
		}
	}
	return ranges
}
