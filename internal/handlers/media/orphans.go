package media

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// thumbnailName is a file that a CMS's naming made: name-150x150.jpg, also with
// auto and with a copy's second extension.
var thumbnailName = regexp.MustCompile(`^(.+)-(?:\d+|auto)x(?:\d+|auto)(\.[A-Za-z0-9]+)(?:\.webp|\.avif)?$`)

// namePattern reads names that the plan's template makes; nil where the CMS's
// pattern does, or where a name does not tell the original's.
func (p plan) namePattern() *regexp.Regexp {
	if p.name == cmsName || !strings.HasPrefix(p.name, "{name}") || !strings.HasSuffix(p.name, ".{ext}") {
		return nil
	}
	sizes := []string{"thumb", `w\d+`}
	for _, s := range append(p.sizes, plainSizes()...) {
		sizes = append(sizes, regexp.QuoteMeta(s.Name))
	}
	const side = `(?:\d+|auto)`
	pattern := strings.NewReplacer(`\{name\}`, "(.+)", `\{size\}`, "(?:"+strings.Join(sizes, "|")+")", `\{w\}`, side,
		`\{h\}`, side,
		`\.\{ext\}`, `(\.[A-Za-z0-9]+)`).Replace(regexp.QuoteMeta(p.name))
	return regexp.MustCompile("^" + pattern + `(?:\.webp|\.avif)?$`)
}

// orphans lists the files that look like thumbnails and that nothing needs.
func (c *checker) orphans(unwanted bool) {
	words := c.plan.namePattern()
	byOriginal := map[string][]Orphan{} // whose names are words
	for key, size := range c.files {
		dir, name := path.Split(key)
		if c.needed[key] {
			continue
		}
		if m := thumbnailName.FindStringSubmatch(name); m != nil {
			if c.orphaned(dir+m[1]+m[2], unwanted) {
				c.report.Orphans = append(c.report.Orphans, Orphan{key, size})
			}
		} else if words != nil {
			if m := words.FindStringSubmatch(name); m != nil && c.orphaned(dir+m[1]+m[2], unwanted) {
				byOriginal[dir+m[1]+m[2]] = append(byOriginal[dir+m[1]+m[2]], Orphan{key, size})
			}
		}
	}
	// One lone "house-large.jpg" may be anything; a thumbnail has siblings, or an
	// original that is known.
	for original, found := range byOriginal {
		if len(found) > 1 || c.originals[original] {
			c.report.Orphans = append(c.report.Orphans, found...)
		}
	}
	slices.SortFunc(c.report.Orphans, func(a, b Orphan) int { return strings.Compare(a.Key, b.Key) })
}

// orphaned says whether a thumbnail of this original, which no row needs, is
// needed by nothing else either.
func (c *checker) orphaned(original string, unwanted bool) bool {
	known := c.originals[original]
	_, there := c.files[original]
	return !known && !there || known && unwanted
}
