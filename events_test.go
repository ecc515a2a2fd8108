package cmsjobs_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

// logCalls are the methods of a slog.Logger and where their message stands.
var logCalls = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1,
	"WarnContext": 1, "ErrorContext": 1,
	"Log": 2, "LogAttrs": 2}

// entry is a call that writes to the log.
type entry struct{ level, message, event string }

var eventName = regexp.MustCompile(`^[a-z]+\.[a-z_]+$`)

// constantText is a text, a constant's name, or several of them joined by +.
func constantText(e ast.Expr, constants map[string]string) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(x.Value)
		return s, err == nil && x.Kind == token.STRING
	case *ast.Ident:
		s, known := constants[x.Name]
		return s, known
	case *ast.BinaryExpr:
		left, known := constantText(x.X, constants)
		right, also := constantText(x.Y, constants)
		return left + right, known && also && x.Op == token.ADD
	}
	return "", false
}

// logEntries are the calls of a file that write to the log. A call without an
// event has "" there.
func logEntries(f *ast.File, constants map[string]string) []entry {
	var list []entry
	text := func(e ast.Expr) (string, bool) { return constantText(e, constants) }
	ast.Inspect(f, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		selector, is := call.Fun.(*ast.SelectorExpr)
		if !is {
			return true
		}
		at, is := logCalls[selector.Sel.Name]
		if !is || len(call.Args) <= at {
			return true
		}
		if owner, is := selector.X.(*ast.Ident); is && owner.Name == "http" || selector.Sel.Name == "Log" &&
			!isLogger(selector.X) {
			return true // http.Error; what lists a log, as the mail log
		}
		e := entry{level: strings.ToLower(strings.TrimSuffix(selector.Sel.Name, "Context"))}
		if e.level == "log" || e.level == "logattrs" {
			e.level = "several"
		}
		e.message, _ = text(call.Args[at])
		if rest := call.Args[at+1:]; len(rest) > 1 {
			if key, _ := text(rest[0]); key == "event" {
				e.event, _ = text(rest[1])
			}
		}
		list = append(list, e)
		return true
	})
	return list
}

// isLogger says whether an expression names a logger, or makes one.
func isLogger(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	case *ast.CallExpr:
		return true
	}
	return slices.Contains([]string{"log", "logger", "slog"}, strings.ToLower(name))
}

// constantsOf are the constants of text in a file.
func constantsOf(f *ast.File, into map[string]string) {
	for _, d := range f.Decls {
		g, is := d.(*ast.GenDecl)
		if !is || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i < len(v.Values) {
					if text, is := constantText(v.Values[i], nil); is {
						into[name.Name] = text
					}
				}
			}
		}
	}
}

// Each log entry of the service has a key event, whose name stands in
// docs/logging.md; -update writes the table there.
func TestEveryLogEntryHasAnEventThatIsDocumented(t *testing.T) {
	constants := map[string]string{}
	var files []source
	for _, s := range sources(t) {
		service := s.dir() == "cmd/cmsjobs" || s.dir() == "client" || s.dir() == "config" ||
			strings.HasPrefix(s.dir(), "internal/")
		if service && !s.test() && !(s.Name.Name == "main" && s.dir() != "cmd/cmsjobs") {
			files = append(files, s)
			constantsOf(s.File, constants)
		}
	}
	events, found := map[string]map[string]bool{}, 0
	for _, s := range files {
		for _, e := range logEntries(s.File, constants) {
			found++
			if e.message == "" || !eventName.MatchString(e.event) {
				t.Errorf(`%s: the log entry %q needs a constant message and then "event", "area.what" (it has %q)`,
					s.path, e.message, e.event)
				continue
			}
			if events[e.event] == nil {
				events[e.event] = map[string]bool{}
			}
			events[e.event][fmt.Sprintf("%s | %s |", e.level, strings.ReplaceAll(e.message, "|", `\|`))] = true
		}
	}
	if found < 80 {
		t.Fatalf("only %d log entries were found: the test looks in the wrong place", found)
	}
	var table strings.Builder
	table.WriteString("| event | level | message |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(events)) {
		for _, line := range slices.Sorted(maps.Keys(events[name])) {
			fmt.Fprintf(&table, "| `%s` | %s\n", name, line)
		}
	}
	const path, begin, end = "docs/logging.md", "<!-- events: made by a test -->\n", "<!-- end of events -->"
	page := read(t, path)
	head, rest, ok := strings.Cut(page, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the events", path)
	}
	want := head + begin + table.String() + end + tail
	testgolden.Check(t, path, []byte(want))
}
