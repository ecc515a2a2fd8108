package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// combination is how a person uses the pages.
type combination struct {
	lang, screen string
	scripts      bool
}

func (c combination) String() string {
	return fmt.Sprintf("%s, %s, scripts %t", c.lang, c.screen, c.scripts)
}

// combinations are those in which each action is pressed: any two of language, screen and scripts
// occur with every pair of their values.
var combinations = []combination{{"en", "desktop", true}, {"vi", "phone", true}, {"vi", "desktop", false},
	{"en", "phone", false}}

// pressable lists the buttons of a page that send a form, in the order of the document: their
// number and what they have in common with those of other rows.
const pressable = `[...document.querySelectorAll("main form[method=post] button")].map((e, i) => {
	const f = e.form, u = new URL(e.getAttribute("formaction") || f.getAttribute("action") || "", location.href);
	const action = e.name || f.querySelector("input[name=action]")?.value || "";
	return {at: i, kind: decodeURIComponent(u.pathname) + " " + action + (e.id === "undo" ? " undo" : "") +
		(/^[a-z-]+$/.test(e.id) ? " #" + e.id : "")};
}).filter((a, i) => document.querySelectorAll("main form[method=post] button")[i].checkVisibility())`

type pressableAction struct {
	At   int
	Kind string
}

// outcome is what a page says after an action.
const outcomeOfPage = `({
	status: performance.getEntriesByType("navigation")[0].responseStatus,
	asks: !!document.querySelector("#yes"),
	word: document.querySelector("label[for=typed]")?.innerText.match(/“(.+?)”/)?.[1] || "",
	fault: document.querySelector(".notice.fault, .toast .fault, main form .note.bad")?.innerText || "",
	says: (document.querySelector("#yes") ? document.querySelector("main form p, main form li")?.innerText :
		document.querySelector(".notice, .toast")?.innerText) || "",
	lang: document.documentElement.lang,
})`

type outcomeOfAction struct {
	Status            int
	Asks              bool
	Word, Fault, Says string
	Lang              string
}

// values are what a person writes into the fields of forms.
var values = map[string]string{"name": "shop", "url": "https://x.example/hook", "address": "x@y.example",
	"cron": "0 3 * * *", "payload": "{}", "p.to": "x@y.example", "at": "2026-11-21T12:30:01", "post": "7",
	"to": "x@y.example", "slots": "3"}

// vietnamese are letters that each sentence in Vietnamese has one of, and English has none of.
var vietnamese = regexp.MustCompile(`[ăđĩũơưạ-ỹàáâãèéêìíòóôõùúý]`)

// ids are the parts of addresses that name one of many.
var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{12}\b|\b\d+\b`)

// removing is pressed last on a page: others are pressed on what it removes.
var removing = regexp.MustCompile(`/delete|/revoke|/remove|cancel|delete|/stop|/restart|/clear`)

// walk presses the actions of a site in one combination.
type walk struct {
	*browser
	c       combination
	site    *site
	pressed map[string]string // what was said
}

// TestEveryActionOfEveryPage presses each action of each page in a browser, in each of the
// combinations, with its confirmation.
func TestEveryActionOfEveryPage(t *testing.T) {
	started := time.Now()
	var b *browser
	all := map[string]int{}
	for _, c := range combinations {
		s := newSite(t, jobstest.SQLite, furnished)
		base, _ := serve(t, s)
		if b == nil {
			b = newBrowserAt(t, func() string { return base })
		}
		b.base = base
		b.forget()
		b.scripts(true)
		b.desktop()
		b.signIn("admin")
		b.press(fmt.Sprintf("button[name=lang][value=%s]", c.lang))
		if c.screen == "phone" {
			b.phone()
		}
		b.scripts(c.scripts)
		w := &walk{browser: b, c: c, site: s, pressed: map[string]string{}}
		for _, page := range w.pages() {
			w.pressAll(page)
		}
		for kind := range w.pressed {
			all[kind]++
		}
		t.Logf("%s: %d actions, %s so far", c, len(w.pressed), time.Since(started).Round(time.Second))
	}
	b.scripts(true)
	b.quietConsole()
	if len(all) < 38 {
		t.Errorf("only %d actions were found", len(all))
	}
	t.Logf("%d actions", len(all))
	for kind, n := range all {
		if n < 2 {
			t.Errorf("%s was pressed in %d of %d combinations", kind, n, len(combinations))
		}
	}
}

// forget takes the cookies of another site, whose host is the same.
func (b *browser) forget() {
	b.t.Helper()
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Network.clearBrowserCookies", nil, nil)
	})
}

const tokensPage = "/admin/tokens"

// pages are the addresses of all pages, each with what its actions need.
func (w *walk) pages() (pages []func() string) {
	for _, path := range append(slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == tokensPage }),
		"/admin/enqueue?type=mail.send", "/admin/enqueue?type=cache.clear", "/admin/schedules/sitemap", "/admin/backups/moment", "/admin/backups/b.tar.zst/contents") {
		pages = append(pages, func() string { return path })
	}
	failed := func() string {
		id := w.site.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
		w.site.work()
		return id
	}
	waiting := func() string { return w.site.enqueue(`{"type":"cache.clear","delay":3600,"payload":{"n":1}}`) }
	return append(pages,
		func() string { return "/admin/jobs/" + failed() },
		func() string { return "/admin/jobs/" + failed() + "/edit" },
		func() string { return "/admin/jobs/" + waiting() },
		func() string { return "/admin/jobs/" + waiting() + "/edit" },
		func() string { failed(); return "/admin/jobs?status=failed" },
		func() string { failed(); return "/admin/failed" },
		func() string { waiting(); return "/admin/jobs?status=queued" },
		func() string { waiting(); return "/admin/queues" },
		func() string { return tokensPage }) // last: a token that is revoked may be that of enqueue
}

// pressAll presses the actions of a page that were not pressed on another one.
func (w *walk) pressAll(page func() string) {
	w.t.Helper()
	for {
		path := page()
		w.open(path)
		for range 50 { // what it shows is being counted still
			if !counting(eval[string](w.browser, `document.documentElement.outerHTML`)) {
				break
			}
			w.open(path)
		}
		w.fine(path)
		next, found := w.next()
		if !found {
			return
		}
		w.pressed[next.Kind] = ""
		w.act(path, next)
	}
}

// next is an action that was not pressed yet; those that remove things come last.
func (w *walk) next() (next pressableAction, found bool) {
	for _, a := range eval[[]pressableAction](w.browser, pressable) {
		a.Kind = ids.ReplaceAllString(a.Kind, "ID")
		if _, pressed := w.pressed[a.Kind]; pressed || found && !removing.MatchString(next.Kind) {
			continue
		}
		if !found || !removing.MatchString(a.Kind) {
			next, found = a, true
		}
	}
	return next, found
}

// act fills the form of an action, presses it, confirms it, and looks at what is said.
func (w *walk) act(path string, a pressableAction) {
	w.t.Helper()
	fill := `(() => { const values = ` + jsonOf(values) + `, buttons = "main form[method=post] button";
		const e = document.querySelectorAll(buttons)[` + fmt.Sprint(a.At) + `];
		window.before = true;
		for (const x of e.form.elements) {
			if (x.type === "checkbox" && ["ids", "scope", "events"].includes(x.name) &&
				![...e.form.elements].some(y => y.name === x.name && y.checked)) x.checked = true;
			else if (values[x.name] && x.type !== "hidden" && (!x.value || x.name === "at")) x.value = values[x.name];
		}
		e.click(); return true; })()`
	eval[bool](w.browser, fill)
	w.until(`window.before !== true && document.readyState === "complete"`)
	o := w.said(path, a.Kind)
	if o.Asks {
		if o.Word != "" {
			w.fill("#typed", o.Word)
		}
		w.press("#yes")
		o = w.said(path, a.Kind+", confirmed")
	}
	w.pressed[a.Kind] = o.Says
}

// said is what a page says after an action, which must be no fault and in the language of the person.
func (w *walk) said(path, kind string) (o outcomeOfAction) {
	w.t.Helper()
	o = eval[outcomeOfAction](w.browser, outcomeOfPage)
	switch {
	case o.Status >= 400 || o.Fault != "":
		w.t.Errorf("%s, %s (%s): %d %s", path, kind, w.c, o.Status, o.Fault)
	case o.Lang != w.c.lang || o.Says != "" && vietnamese.MatchString(strings.ToLower(o.Says)) != (w.c.lang == "vi"):
		w.t.Errorf("%s, %s (%s): says in %s %q", path, kind, w.c, o.Lang, o.Says)
	}
	return o
}

// fine says that a page came in the language of the person.
func (w *walk) fine(path string) {
	w.t.Helper()
	if o := eval[outcomeOfAction](w.browser, outcomeOfPage); o.Status >= 400 || o.Lang != w.c.lang {
		w.t.Errorf("%s (%s): %d in %s", path, w.c, o.Status, o.Lang)
	}
}

// jsonOf writes a value as JavaScript reads it.
func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
