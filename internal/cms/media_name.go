package cms

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

var (
	// ErrElsewhere says that a row has the address of a file at another site.
	ErrElsewhere = errors.New("the file lies at another site")
	// ErrOutside says that a row's path leads out of the uploads.
	ErrOutside = errors.New("the path leads out of the CMS's uploads")
)

// MediaName is one reading of a row's URL.
type MediaName struct {
	// File is where the original may be, under the upload place.
	File string
	// Page is the name that the site's pages ask for; thumbnails are named after
	// it. It differs from File only in how Unicode writes letters with accents.
	Page string
}

// Names reads a row's URL in all ways in which rows were seen, the literal one
// first: "./name.webp" (core 7.4.3 and newer), "a/../name.jpg", "/storage/name.jpg",
// the address of the file at this site, its path on this host, escaped for an
// address (%20), and with accents in the other form of Unicode. The names are
// clean relative paths. ErrElsewhere and ErrOutside where there is none.
func (p MediaPlace) Names(address string) ([]MediaName, error) {
	var plain []string
	add := func(name string) {
		name = path.Clean(strings.TrimLeft(name, "/"))
		if name == "." || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsRune(name, 0) {
			return
		}
		if !slices.Contains(plain, name) {
			plain = append(plain, name)
		}
	}
	relative := p.relative(address)
	if len(relative) == 0 {
		return nil, ErrElsewhere
	}
	for _, name := range relative {
		add(name)
		if decoded, err := url.PathUnescape(name); err == nil {
			add(decoded)
		}
	}
	if len(plain) == 0 {
		return nil, fmt.Errorf("%w: %.200q", ErrOutside, address)
	}
	var names []MediaName
	for _, name := range plain {
		names = append(names, MediaName{File: name, Page: name})
	}
	for _, name := range plain {
		for _, form := range []norm.Form{norm.NFC, norm.NFD} {
			if other := form.String(name); other != name {
				names = append(names, MediaName{File: other, Page: name})
			}
		}
	}
	return names, nil
}

// relative takes off what stands before the path under the upload place; none for
// another site's.
func (p MediaPlace) relative(address string) []string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		if !p.ours(u.Host) {
			return nil
		}
		address = u.Path
	}
	if p.Folder != "" && filepath.IsAbs(filepath.FromSlash(address)) {
		if inside, is := strings.CutPrefix(address, strings.TrimRight(filepath.ToSlash(p.Folder), "/")+"/"); is {
			return []string{inside}
		}
	}
	list := []string{address}
	if short, is := strings.CutPrefix(strings.TrimLeft(address, "/"), "storage/"); is {
		list = append(list, short)
	}
	return list
}

// ours says whether a host is that of the site, with or without "www.".
func (p MediaPlace) ours(host string) bool {
	site, err := url.Parse(p.Site)
	bare := func(s string) string { return strings.TrimPrefix(strings.ToLower(s), "www.") }
	return err == nil && site.Host != "" && bare(site.Host) == bare(host)
}
