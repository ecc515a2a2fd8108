package config

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// SitePath is where the pages and the API of a site are below the address of
// the process, unless the site has its own address.
const SitePath = "/sites/"

// siteName is the form of a site's name: it stands in addresses, in the log and
// in labels of metrics.
var siteName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// ofTheProcess are keys that no site can have for itself: all sites of a process
// share what they set.
var ofTheProcess = []string{"http/enabled", "http/listen", "http/tls_cert", "http/tls_key", "queue/memory", "log/",
	"process/"}

// UnknownSite says that nobody configured the site that was asked for.
type UnknownSite struct {
	Name  string
	Known []string
}

func (e UnknownSite) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no site %q: the configuration names none (sites)", e.Name)
	}
	return fmt.Sprintf("there is no site %q; there are %s", e.Name, strings.Join(e.Known, ", "))
}

// yamlFile is what a YAML file says: for all sites, and for each one.
type yamlFile struct {
	shared []setting
	sites  map[string][]setting
}

// names are those of the sites, in the order of the alphabet.
func (f yamlFile) names() []string {
	names := make([]string, 0, len(f.sites))
	for name := range f.sites {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// siteSetting reads one key below sites.
func (f *yamlFile) siteSetting(key string, s setting, all []field, r *report) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(key, "sites"), slash), slash)
	fault := func(format string, args ...any) {
		r.faults = append(r.faults, Fault{Path: dotted(key), Problem: fmt.Sprintf(format, args...), Origin: s.origin})
	}
	section, isMap := s.value.(map[string]any)
	empty := s.value == nil || isMap && len(section) == 0
	switch {
	case name == "" && empty:
		return
	case !siteName.MatchString(name):
		fault("a site's name has letters a to z, digits and inner hyphens, at most 40")
		return
	case rest == "" && !empty:
		fault("a section is wanted here: what this site has for itself, such as cms.dir")
		return
	}
	if f.sites == nil {
		f.sites = map[string][]setting{}
	}
	f.sites[name] = slices.Clone(f.sites[name])
	if empty && (rest == "" || s.value == nil || emptySection(all, rest, s.value)) {
		return
	}
	if problem := siteProblem(name, rest, all); problem != "" {
		fault("%s", problem)
		return
	}
	f.sites[name] = append(f.sites[name], setting{rest, s.value, s.origin + siteOrigin(name)})
}

// siteProblem says why a site cannot have a key; "" where it can.
func siteProblem(name, key string, all []field) string {
	shared := func(p string) bool { return key == p || strings.HasSuffix(p, slash) && strings.HasPrefix(key, p) }
	switch {
	case slices.ContainsFunc(ofTheProcess, shared):
		return fmt.Sprintf("all sites of a process share this: set %s at the top", dotted(key))
	case known(all, key) || insidePayload(key):
		return ""
	}
	if near := likely(key, all); near != "" {
		return "no such key" + meant("sites."+name+"."+near)
	}
	return "no such key"
}

// siteOrigin ends the origin of what a site says for itself.
func siteOrigin(name string) string { return " (sites." + name + ")" }

// Base is the path below which the site's pages and API are: "" for the only site of
// a process, and for one that has its own address.
func (l *Loaded) Base() string {
	if l.Site == "" || l.Host() != "" {
		return ""
	}
	return SitePath + l.Site
}

// Host is the name, and the port where it is not the usual one, by which browsers
// reach the pages of a site that has its own address: http.url without a path.
func (l *Loaded) Host() string {
	u, err := url.Parse(l.HTTP.URL)
	if l.Site == "" || err != nil || !l.ownURL || strings.Trim(u.Path, "/") != "" {
		return ""
	}
	return strings.ToLower(u.Host)
}

// siteURL gives a site an address below the one that all share.
func (l *Loaded) siteURL(own []setting) {
	l.ownURL = slices.ContainsFunc(own, func(s setting) bool { return s.path == "http/url" })
	if shared := l.HTTP.URL; l.Site != "" && shared != "" && !l.ownURL {
		l.HTTP.URL = strings.TrimSuffix(shared, "/") + SitePath + l.Site
	}
}

// Process bounds what the sites of one process do together.
type Process struct {
	// Slots is how many jobs run at once in all sites together.
	Slots int `koanf:"slots"`
}

func defaultProcess() Process { return Process{Slots: 8} }

func (p Process) check(r *report) { r.between("process/slots", p.Slots, 1, 10000) }

// pathOf is the path of a fault: below the site where the site said it, or where
// nobody said it.
func (r *report) pathOf(path string) string {
	origin := originOf(r.origins, path)
	if r.site == "" || origin != "" && !strings.HasSuffix(origin, siteOrigin(r.site)) {
		return dotted(path)
	}
	return "sites." + r.site + "." + dotted(path)
}

// siteOf finds what a site says for itself.
func (f yamlFile) siteOf(name string) ([]setting, error) {
	if own, known := f.sites[name]; known || name == "" {
		return own, nil
	}
	return nil, UnknownSite{Name: name, Known: f.names()}
}

// dotenvFault says which CMS's .env cannot be read.
func dotenvFault(err error, file, site string) error {
	if site != "" {
		return fmt.Errorf("sites.%s.cms.dir: %w", site, err)
	}
	return fmt.Errorf("%w; fix %s or leave --cms out", err, cmp.Or(file, ".env"))
}
