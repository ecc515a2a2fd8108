package fileset

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// matches says whether a slash-separated path fits a pattern. "*", "?" and
// "[…]" stay within one part; "**" stands for any number of parts. A pattern
// that fits a folder fits all that is in it.
func matches(pattern, name string) bool {
	return matchParts(strings.Split(strings.Trim(pattern, "/"), "/"), strings.Split(name, "/"))
}

func matchParts(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(name) + 1 {
				if matchParts(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, _ := path.Match(pattern[0], name[0]); !ok { // bad patterns are refused by New
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return true
}

func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

func CheckPatterns(lists ...[]string) error {
	for _, p := range slices.Concat(lists...) {
		for part := range strings.SplitSeq(p, "/") {
			if _, err := path.Match(part, ""); err != nil {
				return fmt.Errorf("backup: the pattern %q: %w", p, err)
			}
		}
	}
	return nil
}

// Set is one folder of the CMS that belongs into its backups.
type Set struct {
	// Label is its folder's name in the archive, for example "storage".
	Label string
	// Store holds the files. Symlinks in a local one are never followed.
	Store storage.Store
}
