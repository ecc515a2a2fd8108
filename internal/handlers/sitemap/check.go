package sitemap

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// Problem is one thing that is wrong with a published map.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// Report is what Check found.
type Report struct {
	Target string `json:"target"`
	Files  int    `json:"files"`
	URLs   int    `json:"urls"`
	// Found counts all problems, Problems names the first 100.
	Found    int       `json:"found"`
	Problems []Problem `json:"problems,omitempty"`
	// Missing addresses are public in the CMS and not in the map, Extra ones
	// the other way round, Stale ones changed since the map was made. These are
	// what the next run fixes, and no fault of the files.
	Missing int `json:"missing"`
	Extra   int `json:"extra"`
	Stale   int `json:"stale"`
	// Twice counts addresses that two rows of the CMS share.
	Twice int `json:"twice"`
	// Strays are files of ours that the index does not name. They do no harm,
	// and the next run removes them.
	Strays []string `json:"strays,omitempty"`
}

// OK says that the files keep to the rules and say what the CMS says.
func (r Report) OK() bool { return r.Found == 0 }

const maxProblems = 100

// Check reads what is published, against the rules of sitemaps.org and against
// the CMS's tables. It changes nothing.
func (h *Handler) Check(ctx context.Context, progress Progress) (Report, error) {
	if progress == nil {
		progress = func(int64, int64, string) {}
	}
	c := &checker{handler: h, report: Report{Target: h.target.String()}, sets: map[int64]uint64{},
		claims: map[int64]claim{}, progress: progress}
	var err error
	if c.plan, err = h.plan(ctx); err != nil {
		return c.report, err
	}
	if !c.plan.enabled {
		return c.report, c.none(ctx)
	}
	if c.content, err = h.content(ctx, c.plan); err != nil {
		return c.report, err
	}
	if err := c.files(ctx); err != nil {
		return c.report, err
	}
	c.alternates()
	c.missing()
	return c.report, nil
}

// content is every address that the CMS has now, in the form that the
// submission's watermark has too.
func (h *Handler) content(ctx context.Context, p *plan) (*watermark, error) {
	type at struct {
		hash  int64
		stamp uint32
	}
	var list []at
	for i := range p.groups {
		err := h.stream(ctx, p, &p.groups[i], func(*cms.RowError) {}, func(e *entry) error {
			list = append(list, at{hashOf(e.loc), stampOf(e.modified)})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b at) int {
		if a.hash < b.hash {
			return -1
		}
		return 1
	})
	w := &watermark{seen: make([]bool, len(list))}
	for _, a := range list {
		w.hashes, w.stamps = append(w.hashes, a.hash), append(w.stamps, a.stamp)
	}
	return w, nil
}

type checker struct {
	handler  *Handler
	plan     *plan
	content  *watermark
	report   Report
	progress Progress
	sets     map[int64]uint64
	claims   map[int64]claim
	name     string
}

// claim is what an entry says of another: that it has the same alternates.
type claim struct {
	set       uint64
	file, loc string
}

func (c *checker) problem(file string, line int, text string, args ...any) {
	if c.report.Found++; len(c.report.Problems) < maxProblems {
		c.report.Problems = append(c.report.Problems, Problem{file, line, fmt.Sprintf(text, args...)})
	}
}

// none checks a site that wants no map.
func (c *checker) none(ctx context.Context) error {
	names, err := c.handler.target.list(ctx)
	for _, name := range names {
		c.problem(name, 0, "it is still there, although the CMS's setting sitemap_enabled is 0")
	}
	return err
}

// files reads the index, then all that it names.
func (c *checker) files(ctx context.Context) error {
	var parts []string
	index, err := c.file(ctx, indexName, func(e listed) {
		name, here := strings.CutPrefix(e.loc, c.plan.links.Root+"/")
		if !here || strings.Contains(name, "/") {
			c.problem(indexName, 0, "it names %s, which is not beside it", e.loc)
			return
		}
		parts = append(parts, name)
	})
	if err != nil {
		return err
	}
	if !index {
		return c.strays(ctx, nil)
	}
	for _, name := range parts {
		nested, err := c.file(ctx, name, func(listed) {})
		if err != nil {
			return err
		}
		if nested {
			c.problem(name, 0, "an index inside an index is not allowed")
		}
	}
	return c.strays(ctx, parts)
}

// file reads one document; locs gets the entries of an index.
func (c *checker) file(ctx context.Context, name string, part func(listed)) (index bool, err error) {
	f, err := c.handler.target.open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		c.problem(name, 0, "it is not there")
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening %s: %w", name, err)
	}
	c.name = name
	counted := &counter{Reader: f}
	in := &inspector{problem: func(line int, text string) { c.problem(name, line, "%s", text) }}
	in.entry = func(e listed) {
		if in.index {
			part(e)
			return
		}
		c.entry(in.line, e)
	}
	if err := in.read(counted); err != nil {
		c.problem(name, in.line, "%v", err)
	}
	if counted.n > maxBytes {
		c.problem(name, 0, "it has more than 50 MB")
	}
	c.report.Files++
	return in.index, f.Close()
}

type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// entry compares an address with the CMS's.
func (c *checker) entry(line int, e listed) {
	if c.report.URLs++; c.report.URLs%1000 == 0 {
		c.progress(int64(c.report.URLs), int64(len(c.content.hashes)), "checking")
	}
	if !strings.HasPrefix(e.loc, c.plan.links.Root) {
		c.problem(c.name, line, "%s is not on this site, %s", e.loc, c.plan.links.Root)
	}
	hash := hashOf(e.loc)
	i, known := slices.BinarySearch(c.content.hashes, hash)
	switch {
	case !known:
		c.report.Extra++
	case c.content.seen[i]:
		c.report.Twice++
	default:
		c.content.seen[i] = true
		if c.content.stamps[i] != stampOf(e.modified) {
			c.report.Stale++
		}
	}
	if len(e.alternates) > 0 {
		c.set(line, hash, e)
	}
}

// set notes an entry's alternates, in an order that does not matter.
func (c *checker) set(line int, hash int64, e listed) {
	var sum uint64
	self := false
	for _, a := range e.alternates {
		h := fnv.New64a()
		h.Write([]byte(a.language + "\x00" + a.loc))
		sum += h.Sum64()
		self = self || a.loc == e.loc
	}
	if !self {
		c.problem(c.name, line, "the alternates of %s do not name itself", e.loc)
	}
	c.sets[hash] = sum
	for _, a := range e.alternates {
		other := hashOf(a.loc)
		if before, there := c.claims[other]; there && before.set != sum {
			c.problem(c.name, line, "%s is in different sets of alternates", a.loc)
		}
		c.claims[other] = claim{sum, c.name, a.loc}
	}
}

// alternates checks that sets are mutual: who is named names the same.
func (c *checker) alternates() {
	for hash, claim := range c.claims {
		set, there := c.sets[hash]
		switch {
		case !there:
			c.problem(claim.file, 0, "%s is an alternate of others, but is not listed with alternates itself",
				claim.loc)
		case set != claim.set:
			c.problem(claim.file, 0, "%s does not name the same alternates as those that name it", claim.loc)
		}
	}
}

// missing counts what the CMS has and the map has not.
func (c *checker) missing() {
	for i, seen := range c.content.seen {
		// Two rows with one address are one entry too many, not one missing.
		if !seen && (i == 0 || c.content.hashes[i-1] != c.content.hashes[i]) {
			c.report.Missing++
		}
	}
}

// strays finds files of ours that the index does not name.
func (c *checker) strays(ctx context.Context, parts []string) error {
	names, err := c.handler.target.list(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if plain := strings.TrimSuffix(name, ".gz"); plain != indexName && plain != stylesheetName &&
			!slices.Contains(parts, plain) {
			c.report.Strays = append(c.report.Strays, name)
		}
	}
	return nil
}
