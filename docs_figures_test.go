package cmsjobs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// measurement is a cell of a table on a page that holds measurements.
type measurement struct {
	page, section string // the section's anchor
	row, column   string // the row's first cell, the column's heading; the first such row counts
	decimals      int    // to which the text rounds it
}

// statement is a text about speed, memory or size, and where its figures were
// measured. The text stands in the document as a link to the section:
// [80 × Laravel's worker](docs/benchmarks.md#against-the-aims).
type statement struct {
	document, text string // with %s for each figure
	figures        []measurement
}

const aims = "against-the-aims"

var statements = []statement{
	{"README.md", "%s MiB, %s with the pages of its file", []measurement{
		{"docs/benchmarks.md", aims, "MySQL: idle, private MiB", "this run", 0},
		{"docs/benchmarks.md", aims, "MySQL: idle, resident MiB, the program's file included", "this run", 0}}},
	{"README.md", "%s failed jobs are retried in %s MiB", []measurement{
		{"docs/scaling.md", "many-failed-jobs", "retry by a filter", "failed jobs", 0},
		{"docs/scaling.md", "many-failed-jobs", "retry by a filter", "more memory of the process, MiB", 0}}},
	{"README.md", "%s × Laravel's worker on the same MySQL table, %s × on MariaDB's", []measurement{
		{"docs/benchmarks.md", aims, "drain, MySQL : Laravel's one worker", "this run", 0},
		{"docs/benchmarks.md", aims, "drain, MariaDB : Laravel's one worker", "this run", 0}}},
	{"README.md", "a claim takes %s ms before a million waiting rows and %s ms before a thousand", []measurement{
		{"docs/benchmarks.md", "one-claim-over-a-deep-queue-mysql-ms", "1,000,000 waiting", "p50", 2},
		{"docs/benchmarks.md", "one-claim-over-a-deep-queue-mysql-ms", "1,000 waiting", "p50", 2}}},
	{"README.md", "thumbnails of a photo of 12 megapixels take %s × less processor time than sharp's usual code",
		[]measurement{{"docs/benchmarks.md", "images", "12mp.jpg", "usual", 1}}},
	{"docs/scaling.md", "one slot does %s a second", []measurement{
		{"docs/benchmarks.md", "throughput-beside-laravel-mariadb", "cmsjobs: 1 slot, strictly one after the other",
			"jobs/s", 0}}},
}

// measured are the pages that hold measurements: what they say of their
// tables is written beside them.
var measured = []string{"docs/benchmarks.md", "docs/reliability.md", "docs/scaling.md"}

// A figure in README or docs is the one of the page that holds its measurement.
func TestFiguresAreThoseOfTheirMeasurement(t *testing.T) {
	for _, s := range statements {
		if problem := s.check(t, strings.Join(strings.Fields(read(t, s.document)), " "), func(page string) string {
			return read(t, page)
		}); problem != "" {
			t.Error(problem)
		}
	}
}

// check says what is wrong with a statement in a document's text, "" when
// nothing is.
func (s statement) check(t *testing.T, text string, page func(string) string) string {
	t.Helper()
	var figures []any
	for _, m := range s.figures {
		figure, err := m.read(page(m.page))
		if err != nil {
			return fmt.Sprintf("%s: %v", m.page, err)
		}
		figures = append(figures, figure)
	}
	target := s.figures[0].page
	if strings.HasPrefix(s.document, "docs/") {
		target = strings.TrimPrefix(target, "docs/")
	}
	if want := fmt.Sprintf("[%s](%s#%s)", fmt.Sprintf(s.text, figures...), target,
		s.figures[0].section); !strings.Contains(text, want) {
		return fmt.Sprintf("%s does not say what was measured:\n%s", s.document, want)
	}
	return ""
}

// read finds the cell in a page.
func (m measurement) read(page string) (string, error) {
	var columns []string
	var found []string
	in := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			in, columns = anchor(line) == m.section, nil
			continue
		}
		if !in || !strings.HasPrefix(line, "|") {
			columns = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if columns == nil {
			columns = cells
			continue
		}
		for i, name := range columns {
			if name == m.column && cells[0] == m.row && i < len(cells) {
				found = append(found, cells[i])
			}
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("the section %s has no row %q with a column %q", m.section, m.row, m.column)
	}
	number := strings.ReplaceAll(strings.TrimSuffix(found[0], " ×"), ",", "")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return "", fmt.Errorf("the figure of %s, %q, is no number: %w", m.section, m.row, err)
	}
	digits := strconv.FormatFloat(value, 'f', m.decimals, 64)
	if m.decimals == 0 {
		digits = thousands(digits)
	}
	return digits, nil
}

// anchor is the address of a heading, as hosts of Markdown make it.
func anchor(heading string) string {
	text := strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#")))
	text = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(text, "")
	return strings.ReplaceAll(text, " ", "-")
}

var (
	// unsourced is what a figure about speed, memory or size looks like; limits
	// are written in MiB and KiB, and no figures of this kind.
	unsourced     = regexp.MustCompile(`\d[\d.,]* ?(?:×|MB\b|jobs/s\b|(?:jobs|rows|mails|pages|pictures) a second)`)
	unsourcedHere = regexp.MustCompile(
		`\d[\d.,]* ?(?:×|[KMG]i?B\b|ms\b|µs\b|%|jobs/s\b|(?:jobs|rows|mails|pages|pictures) a second)`)
	sourced     = regexp.MustCompile(`\[[^\]]*\d[^\]]*\]\((?:docs/)?(?:benchmarks|reliability|scaling)\.md#[^)]*\)`)
	notProse    = regexp.MustCompile("(?s)```.*?```|`[^`]*`|<!--.*?-->")
	soakFigures = regexp.MustCompile(`In \d+ minutes of all job types mixed,.*?without`)
)

// Each figure about speed, memory or size is a link to its measurement, and
// each such link is checked.
func TestFiguresNameTheirMeasurement(t *testing.T) {
	for path, text := range documents(t) {
		looked := unsourced
		switch {
		case path == "README.md":
			looked = unsourcedHere
		case slices.Contains(measured, path) || !strings.HasPrefix(path, "docs/") ||
			strings.HasPrefix(path, "docs/adr/"):
			looked = nil // an ADR tells what was measured when it was decided
		}
		for _, problem := range unsourcedFigures(path, text, looked) {
			t.Error(problem)
		}
	}
}

func unsourcedFigures(path, text string, looked *regexp.Regexp) (problems []string) {
	text = strings.Join(strings.Fields(notProse.ReplaceAllString(text, " ")), " ")
	for _, link := range sourced.FindAllString(text, -1) {
		known := false
		for _, s := range statements {
			pattern := strings.ReplaceAll(regexp.QuoteMeta("["+s.text+"]"), "%s", `[\d.,]+`)
			known = known || s.document == path && regexp.MustCompile("^"+pattern).MatchString(link)
		}
		if !known {
			problems = append(problems, fmt.Sprintf("%s: nothing compares the figures of %s with their measurement: "+
				"add it to the list of statements", path, link))
		}
	}
	if looked == nil {
		return problems
	}
	text = soakFigures.ReplaceAllString(sourced.ReplaceAllString(text, " "), " ")
	for _, figure := range looked.FindAllString(text, -1) {
		problems = append(problems, fmt.Sprintf("%s: the figure %q names no measurement: make it a link to the "+
			"section that holds it", path, figure))
	}
	return problems
}

// The two tests above see a stale figure, one without a source, and a link that
// nothing compares.
func TestStaleFiguresAreSeen(t *testing.T) {
	s := statement{"README.md", "%s × Laravel's worker", []measurement{
		{"p", "against-the-aims", "drain", "this run", 0}}}
	page := "## Against the aims\n\n| what | this run | aim |\n|---|---|---|\n| drain | 79.91 | 60 |\n"
	read := func(string) string { return page }
	if problem := s.check(t, "[80 × Laravel's worker](p#against-the-aims)", read); problem != "" {
		t.Error(problem)
	}
	for _, stale := range []string{"[60 × Laravel's worker](p#against-the-aims)", "80 × Laravel's worker",
		"[80 × Laravel's worker](p#elsewhere)"} {
		if s.check(t, stale, read) == "" {
			t.Errorf("nothing is said of %s", stale)
		}
	}
	page = strings.ReplaceAll(page, "drain", "other")
	if s.check(t, "[80 × Laravel's worker](p#against-the-aims)", read) == "" {
		t.Error("a row that is gone is not missed")
	}
	for text, problems := range map[string]int{"it takes 12 MB": 1, "it is 60 × as fast": 1,
		"3 jobs a second, 5 ms": 2, "[9 × nothing](docs/benchmarks.md#x)": 1,
		"`60 ×` in code": 0, "[57 × Laravel's worker on the same MySQL table, 78 × on " +
			"MariaDB's](docs/benchmarks.md#against-the-aims)": 0, "200 lines": 0} {
		if got := unsourcedFigures("README.md", text, unsourcedHere); len(got) != problems {
			t.Errorf("%s: %d problems, want %d: %v", text, len(got), problems, got)
		}
	}
}
