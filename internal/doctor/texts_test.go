package doctor

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// saidForms are the sentences that the checks of this package make: the strings that the calls of
// its functions for findings name, constants included.
func saidForms(t *testing.T) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	for range 2 { // a constant may be made of one that stands behind it
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if v, is := n.(*ast.ValueSpec); is && len(v.Values) == 1 {
					if text, is := literal(v.Values[0], constants); is {
						constants[v.Names[0].Name] = text
					}
				}
				return true
			})
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			forms := map[string]int{"ok": 1, "warn": 2, "fail": 2, "say": 1, "by": 1}[called(call)]
			for i := range min(forms, len(call.Args)) {
				if form, is := literal(call.Args[i], constants); is {
					found = append(found, form)
				}
			}
			return true
		})
	}
	return found
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literal is the value of a string that is written in pieces, which may be constants.
func literal(e ast.Expr, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		s, known := constants[e.Name]
		return s, known
	case *ast.BinaryExpr:
		left, is := literal(e.X, constants)
		right, too := literal(e.Y, constants)
		return left + right, is && too
	}
	return "", false
}

// Each sentence has a Vietnamese one with the same values in the same order, and none is kept that
// nothing says. Commands alone are the same in all languages.
func TestFindingsAreThereInVietnamese(t *testing.T) {
	texts, err := Vietnamese()
	if err != nil {
		t.Fatal(err)
	}
	verb, letter := regexp.MustCompile(`%[.0-9]*[a-z%]`), regexp.MustCompile(`[a-z]{2}`)
	command := regexp.MustCompile(`^(cmsjobs( [a-z]+)+( %s)?|chmod o\+r %s|ALTER TABLE .*)$`)
	said := saidForms(t)
	if len(said) < 180 {
		t.Fatalf("only %d sentences were found: the test looks in the wrong place", len(said))
	}
	for _, form := range said {
		if !letter.MatchString(verb.ReplaceAllString(form, "")) || command.MatchString(form) {
			continue
		}
		other, there := texts[form]
		if !there {
			t.Errorf("no Vietnamese for %q", form)
			continue
		}
		if !slices.Equal(verb.FindAllString(form, -1), verb.FindAllString(other, -1)) {
			t.Errorf("%q and %q have other values", form, other)
		}
	}
	for form := range texts {
		if !slices.Contains(said, form) {
			t.Errorf("nothing says %q", form)
		}
	}
}

// A finding in another language has its values, its remedy and the parts of its sentence in it; what
// is not known stays.
func TestAFindingInAnotherLanguage(t *testing.T) {
	texts, err := Vietnamese()
	if err != nil {
		t.Fatal(err)
	}
	texts["condition.no_worker"], texts["condition.no_worker.fix"] = "Không có tiến trình", "Chạy `cmsjobs run`"
	condition := fail("start it", "%s", "No worker runs: 3 jobs wait")
	condition.Check, condition.title = "no_worker", "No worker runs"
	for what, c := range map[string]struct {
		f         Finding
		text, fix string
	}{
		"values": {warn("cmsjobs failed groups shows the causes", "%d {job|jobs} failed within a day (%d in all)", 1, 7),
			"1 công việc thất bại trong một ngày (tổng cộng 7)", "cmsjobs failed groups cho biết nguyên nhân"},
		"a remedy with values": {warn("", "%s is not writable: %v", "/a", errors.New("no")).by(
			"start a worker for it: cmsjobs work --queue %s", "mail"), "không ghi được vào /a: no",
			"khởi động một tiến trình cho nó: cmsjobs work --queue mail"},
		"a part": {ok("%s; %s", say("feed.probe is 0: a row of another program waits up to %s (queue.poll)", "1s"),
			say("so are edits of the CMS's content")), "feed.probe là 0: dòng do chương trình khác thêm chờ tối đa 1s " +
			"(queue.poll); thay đổi nội dung của CMS cũng vậy", ""},
		"unknown":     {warn("do it", "%d of the server's words", 3), "3 of the server's words", "do it"},
		"a condition": {condition, "Không có tiến trình: 3 jobs wait", "Chạy cmsjobs run"},
	} {
		if got := c.f.In(texts); got.What != c.text || got.Fix != c.fix {
			t.Errorf("%s: %q, %q", what, got.What, got.Fix)
		}
	}
}
