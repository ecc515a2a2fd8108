package cms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Profile is what was found out about a CMS by looking at it.
type Profile struct {
	// Version is what the CMS's code says of itself ("7.6.8"), "" where its
	// folder is not known or says nothing.
	Version string
	// Era is what the tables say ("7.5 or newer"), which counts: a database may
	// be older or newer than the code beside it.
	Era string
	// Prefix of the tables.
	Prefix string
	// Content are the stock models whose tables are there, IDs the type of
	// their ids as the database names it.
	Content []string
	IDs     string
	// What not every version has.
	SlugPrefixes, SlugTranslations, CacheTable, FailedJobUUIDs bool
	MediaAlt, MediaVisibility, AuditActors, Notifications      bool
	// Languages of the site, the default first.
	Languages []Language
	// Zone of the CMS's wall-clock times.
	Zone string
}

// marks are columns by which versions differ, newest first (they were added
// and never taken away).
var marks = []struct{ table, column, era string }{
	{"audit_histories", "actor_id", "7.5 or newer"},
	{"media_files", "visibility", "7.0 to 7.4"},
	{"slugs_translations", "slugs_id", "6.8 or newer 6"},
	{"media_files", "alt", "6"},
	{"slugs", "prefix", "5"},
}

// Probe looks at the CMS once. It is no judgement: what is missing is only
// said.
func (s *Site) Probe(ctx context.Context) (Profile, error) {
	p := Profile{Prefix: s.Prefix, Era: "unknown"}
	tables := map[string]map[string]string{}
	columns := func(table string) (map[string]string, error) {
		if found, known := tables[table]; known {
			return found, nil
		}
		found, err := s.Columns(ctx, table)
		tables[table] = found
		return found, err
	}
	var fault error
	has := func(table, column string) bool {
		found, err := columns(table)
		fault = errors.Join(fault, err)
		_, there := found[column]
		return there
	}
	for _, m := range Models() {
		if has(m.Table, "id") {
			p.Content = append(p.Content, m.Name)
			p.IDs = tables[m.Table]["id"]
		}
	}
	for _, m := range marks {
		if has(m.table, m.column) {
			p.Era = m.era
			break
		}
	}
	p.SlugPrefixes, p.SlugTranslations = has("slugs", "prefix"), has("slugs_translations", "slugs_id")
	p.CacheTable, p.FailedJobUUIDs = has("cache", "key"), has("failed_jobs", "uuid")
	p.MediaAlt, p.MediaVisibility = has("media_files", "alt"), has("media_files", "visibility")
	p.AuditActors, p.Notifications = has("audit_histories", "actor_id"), has("admin_notifications", "title")
	if fault != nil {
		return p, fault
	}
	return p, s.probeSettings(ctx, &p)
}

func (s *Site) probeSettings(ctx context.Context, p *Profile) error {
	zone, err := s.Zone(ctx)
	if err != nil {
		return err
	}
	p.Zone = zone.String()
	if p.Languages, err = s.Languages(ctx); err != nil {
		return err
	}
	p.Version, err = s.codeVersion()
	return err
}

// coreVersion is in core/base's helpers: return '7.6.8'; inside get_core_version.
var coreVersion = regexp.MustCompile(
	`(?s)function\s+get_core_version\b.{0,200}?return\s+['"]([0-9][0-9A-Za-z.-]{0,30})['"]`)

const versionFile = "platform/core/base/helpers/common.php"

func (s *Site) codeVersion() (string, error) {
	if s.Root == "" {
		return "", nil
	}
	// The owner's code may lie elsewhere: "platform" may be a link (Deployer, Composer's path repositories).
	f, err := os.Open(filepath.Join(s.Root, filepath.FromSlash(versionFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the CMS's version: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("reading the CMS's version: %w", err)
	}
	if m := coreVersion.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	return "", nil
}

// Lines say what was found, for people.
func (p Profile) Lines() []string {
	version := "by its tables " + p.Era
	if p.Version != "" {
		version = p.Version + " by its code, " + version
	}
	yes := func(there bool) string {
		if there {
			return "yes"
		}
		return "no"
	}
	codes := make([]string, len(p.Languages))
	for i, l := range p.Languages {
		codes[i] = l.Code
	}
	content := "none of pages, posts, categories, tags, galleries: check the database name and DB_PREFIX"
	if len(p.Content) > 0 {
		content = strings.Join(p.Content, ", ") + " (ids are " + p.IDs + ")"
	}
	return []string{
		"version: " + version,
		"content: " + content,
		"time zone: " + p.Zone,
		"languages: " + orNone(codes),
		fmt.Sprintf("slugs: prefixes %s, translations %s", yes(p.SlugPrefixes), yes(p.SlugTranslations)),
		fmt.Sprintf("cache table: %s; uuids in failed_jobs: %s; admin notifications: %s", yes(p.CacheTable),
			yes(p.FailedJobUUIDs), yes(p.Notifications)),
		fmt.Sprintf("media: alt %s, visibility %s; audit log with actors: %s", yes(p.MediaAlt), yes(p.MediaVisibility),
			yes(p.AuditActors)),
	}
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "one, not translated"
	}
	return strings.Join(list, ", ")
}
