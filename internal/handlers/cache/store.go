package cache

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
)

// store is a place where Laravel keeps cached things.
type store interface {
	// name is Laravel's word for it.
	name() string
	// flush removes all of the CMS's entries, expired only what is over.
	flush(ctx context.Context, r *Report) error
	expired(ctx context.Context, r *Report) error
	// forget removes entries by their keys, forgetPrefixes by how those begin;
	// both without the store's own prefix.
	forget(ctx context.Context, keys []string, r *Report) error
	forgetPrefixes(ctx context.Context, prefixes []string, r *Report) error
	// forgetTags removes the entries that Laravel tagged so (Cache::tags), and
	// returns the tags that were there. Only Redis has tags.
	forgetTags(ctx context.Context, tags []string, r *Report) (there []string, err error)
}

// apart are the prefixes under which entries are searched: those that another
// one of them does not cover already.
func apart(prefixes []string) []string {
	return slices.DeleteFunc(slices.Clone(prefixes), func(p string) bool {
		return slices.ContainsFunc(prefixes, func(other string) bool {
			return other != p && strings.HasPrefix(p, other)
		})
	})
}

// nothing notes that a clearing removed nothing from a store that holds n
// entries: the site has none, or its prefix is another one.
func nothing(s laravel.CacheStore, n int64, where string, r *Report) {
	from := "read from the CMS's configuration"
	if !s.Known {
		from = "guessed: the CMS's config/cache.php could not be read"
	}
	r.Untouched = n
	r.note("nothing was removed: %s holds %d entries, and none begins with %s (%s); if the CMS's cache is not empty, "+
		"set cache.prefix", where, n,
		strings.Join(quoted(s.Prefixes), " or "), from)
}

func quoted(all []string) []string {
	q := make([]string, len(all))
	for i, s := range all {
		q[i] = strconv.Quote(s)
	}
	return q
}
