package cache

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms"
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
}

// store finds the CMS's cache store. CACHE_STORE is Laravel 11's name for what
// was CACHE_DRIVER; file is the CMS's own default.
func (h *Handler) store() (store, error) {
	name := h.options.Store
	if name == "" {
		name = h.site.Env.String("CACHE_STORE", h.site.Env.String("CACHE_DRIVER", "file"))
	}
	switch name {
	case "file":
		return fileStore{h}, nil
	case "database":
		return databaseStore{h}, nil
	case "redis":
		return redisStore{h}, nil
	}
	return nil, fmt.Errorf("the CMS's cache store %q cannot be cleared from outside PHP: run `php artisan cache:clear` there", name)
}

// The word that Laravel's skeletons put behind the site's name: "-cache-"
// since Laravel 12.2x, "_cache_" before.
var (
	newPrefixes   = regexp.MustCompile(`['"]-(cache|database)-['"]`)
	separatorNone = regexp.MustCompile(`[^\pL\pN\s_-]+`)
	separatorRuns = regexp.MustCompile(`[\s_-]+`)
)

// prefixes lists what may stand before a cache key. More than one is returned
// only where the CMS's config files could not be read: then both spellings
// that Laravel has had are the site's own.
func (h *Handler) prefixes() []string {
	if h.options.Prefix != "" {
		return []string{h.options.Prefix}
	}
	return prefixes(h.site, "CACHE_PREFIX", "cache", "config/cache.php")
}

// prefixes reads a prefix from the .env, else derives it from the site's name
// as the CMS's config file does.
func prefixes(site *cms.Site, key, word, config string) []string {
	if prefix, set := site.Env[key]; set {
		return []string{prefix}
	}
	name := site.Env.String("APP_NAME", "laravel")
	fresh, old := slug(name, "-")+"-"+word+"-", slug(name, "_")+"_"+word+"_"
	text, err := configFile(site.Root, config)
	switch {
	case err != nil:
		return []string{fresh, old}
	case newPrefixes.MatchString(text):
		return []string{fresh}
	}
	return []string{old}
}

func configFile(root, name string) (string, error) {
	if root == "" {
		return "", errNoFolder
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := r.ReadFile(name)
	return string(data), err
}

// slug is Laravel's Str::slug for names in Latin letters without accents; a
// site with another name sets CACHE_PREFIX or the option.
func slug(name, separator string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "@", separator+"at"+separator)
	name = separatorNone.ReplaceAllString(name, "")
	return strings.Trim(separatorRuns.ReplaceAllString(name, separator), separator)
}
