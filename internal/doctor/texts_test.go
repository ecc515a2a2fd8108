package doctor

import (
	"errors"
	"regexp"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/phrase/phrasetest"
)

// saidForms are the sentences that the checks of this package make.
func saidForms(t *testing.T) (found []string) {
	t.Helper()
	arguments := map[string]int{"ok": 1, "warn": 2, "fail": 2, "say": 1, "by": 1}
	for _, call := range phrasetest.Calls(t, "*.go") {
		for _, text := range call.Texts[:min(arguments[call.Name], len(call.Texts))] {
			if text != nil {
				found = append(found, *text)
			}
		}
	}
	return found
}

// Commands alone are the same in all languages.
func TestFindingsAreThereInVietnamese(t *testing.T) {
	texts, err := Vietnamese()
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`^(cmsjobs( [a-z]+)+( %s)?|chmod o\+r %s|ALTER TABLE .*)$`)
	said := saidForms(t)
	if len(said) < 180 {
		t.Fatalf("only %d sentences were found: the test looks in the wrong place", len(said))
	}
	phrasetest.AreTranslated(t, said, texts, command.MatchString)
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
