package web_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// unreachable are the actions of a page that a person cannot find or hit: without a name, outside of the
// window, or too small for a finger.
const unreachable = `[...document.querySelectorAll("main button, main a.btn")].filter(e => e.checkVisibility()).flatMap(e => {
	const box = e.getBoundingClientRect(), name = (e.innerText || e.getAttribute("aria-label") || e.title || e.textContent).trim();
	const away = box.right > innerWidth + 1 && !e.closest(".tbl-scroll, .bulk, pre");
	return name && !away && box.width >= 24 && box.height >= 24 ? [] : [e.outerHTML.slice(0, 160)];
})`

// TestActionsInEveryLanguageOnEveryScreenWithAndWithoutScripts walks through all eight combinations: it looks
// whether each action of each page can be reached, pauses a queue and continues it, enqueues a job by its
// form, and cancels it.
func TestActionsInEveryLanguageOnEveryScreenWithAndWithoutScripts(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"cache.clear","delay":3600,"payload":{"n":1}}`) // the queue appears with it
	b := newBrowser(t, s)
	b.signIn("admin")
	words := map[string][3]string{"en": {"is paused", "is active again", "Cancelled"},
		"vi": {"đã tạm dừng", "đã tiếp tục", "Đã hủy"}}
	for _, lang := range []string{"en", "vi"} {
		b.open("/admin")
		b.press(fmt.Sprintf("button[name=lang][value=%s]", lang))
		for _, screen := range []string{"desktop", "phone"} {
			if screen == "phone" {
				b.phone()
			}
			for _, scripts := range []bool{true, false} {
				b.scripts(scripts)
				mode := fmt.Sprintf("%s, %s, scripts %t", lang, screen, scripts)
				for _, path := range append(parts, "/admin/enqueue?type=mail.send", "/admin/schedules/sitemap") {
					b.open(path)
					for _, e := range eval[[]string](b, unreachable) {
						t.Errorf("%s (%s): not to be reached: %s", path, mode, e)
					}
				}
				b.actsOnAJob(words[lang])
			}
			b.scripts(true)
		}
		b.desktop()
	}
	b.quietConsole()
	eval[bool](b, `document.querySelector("main").insertAdjacentHTML("beforeend", "<button></button>"); true`)
	if found := eval[[]string](b, unreachable); len(found) != 1 {
		t.Errorf("a button without a name is not noticed: %q", found)
	}
}

// actsOnAJob does what a person does most, and sees it said in words.
func (b *browser) actsOnAJob(words [3]string) {
	b.t.Helper()
	b.open("/admin/queues")
	b.press("#q-cmsjobs")
	b.sees(words[0])
	b.press("#q-cmsjobs")
	b.sees(words[1])
	b.open("/admin/enqueue?type=cache.clear")
	b.press("form[method=post] button.btn.main")
	b.until(`location.pathname.startsWith("/admin/jobs/") && !!document.querySelector("#cancel")`)
	b.press("#cancel")
	b.sees(words[2])
}

// desktop takes a phone's width back.
func (b *browser) desktop() {
	b.t.Helper()
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Emulation.clearDeviceMetricsOverride", map[string]any{}, nil)
	})
}
