package web_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestAFilterIsTypedWithSuggestions types as a person does, takes a suggestion by the
// keyboard, takes a condition away, saves the filter, and undoes its deletion.
func TestAFilterIsTypedWithSuggestions(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
	s.enqueue(`{"type":"cache.clear","payload":{}}`)
	s.work()
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, s)
	b.signIn("operator")
	for _, lang := range []string{"en", "vi"} {
		b.look("dark", lang)
		b.open("/admin/jobs")
		eval[bool](b, `document.querySelector("#q").focus(), document.querySelector("#q").click(), true`)
		b.until(`document.querySelector("#q").getAttribute("aria-expanded") === "true"`)
		b.until(`[...document.querySelectorAll("#q-list li")].some(l => l.dataset.value === "status:")`)
		b.fill("#q", "mai")
		b.until(`document.querySelector("#q-list li").dataset.value === "type:mail.send"`)
		if found := b.violations(string(axe), everything); len(found) > 0 {
			t.Errorf("with the suggestions open: %+v", found)
		}
		b.keys("ArrowDown")
		b.until(`document.querySelector("#q").getAttribute("aria-activedescendant") === "q-option-0"`)
		b.keys("Enter")
		b.until(`location.search === "?q=type%3Amail.send" && document.readyState === "complete" &&
			document.querySelectorAll(".tokens .tok").length === 1`)
		b.fill("#q", "status:fai")
		b.until(`document.querySelectorAll("#q-list li").length === 1`)
		b.keys("ArrowDown", "Enter")
		b.until(`location.search.includes("status%3Afailed") && document.readyState === "complete" &&
			document.querySelectorAll(".tokens .tok").length === 2`)
		eval[bool](b, `document.querySelector("#q").focus(), document.querySelector("#q").click(), true`)
		b.until(`document.querySelector("#q").getAttribute("aria-expanded") === "true"`) // its script runs
		b.keys("Backspace")
		b.until(`document.querySelectorAll(".tokens .tok").length === 1`)
	}
	for _, width := range []int{1280, 390} {
		b.width(width)
		b.open("/admin/jobs?type=mail.send")
		b.click("#filter-saved summary")
		b.fill("#filter-name", "Mails")
		b.press("#save-filter")
		b.until(`document.querySelector(".toast") !== null && document.querySelector("#filter-saved .tok") !== null`)
		b.click("#filter-saved summary")
		b.noOverflow("saved filters", width)
		b.press("#filter-saved .tok button")
		b.until(`document.querySelector(".toast #undo") !== null && document.querySelector("#filter-saved .tok") === null`)
		b.picture("/admin/jobs", "undo")
		if found := b.violations(string(axe), everything); len(found) > 0 {
			t.Errorf("with a toast: %+v", found)
		}
		b.press("#undo")
		b.until(`document.querySelector("#filter-saved .tok") !== null`)
	}
	b.quietConsole()
	b.scripts(false)
	b.open("/admin/jobs")
	if list := eval[string](b, `document.querySelector("#q").getAttribute("list")`); !strings.Contains(list, "q-options") {
		t.Error("without a script the browser has nothing to suggest")
	}
}
