package web_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPicturesOfADemo photographs the pages of a "cmsjobs demo" that runs at
// CMSJOBS_DEMO, with the password CMSJOBS_DEMO_PASSWORD of admin, into the
// folder CMSJOBS_SCREENSHOTS, and looks on as a backup and a sitemap are made:
// each starts and ends on its page without a load. docs/screenshots.sh runs it.
func TestPicturesOfADemo(t *testing.T) {
	base, folder := os.Getenv("CMSJOBS_DEMO"), os.Getenv("CMSJOBS_SCREENSHOTS")
	if base == "" || folder == "" {
		t.Skip("CMSJOBS_DEMO and CMSJOBS_SCREENSHOTS are not set")
	}
	b := browserAt(t, base)
	b.open("/admin/sign-in")
	b.do(chromedp.SendKeys(chromedp.CSS("#name"), "admin"), chromedp.SendKeys(chromedp.CSS("#password"), os.Getenv("CMSJOBS_DEMO_PASSWORD")))
	b.press("form button.main")
	for _, page := range []string{"sitemap", "backups"} {
		b.open("/admin/" + page)
		b.press("#now")
		eval[bool](b, `window.same = true`)
		b.sees("Done in")
		if !eval[bool](b, `window.same === true`) {
			t.Errorf("%s was loaded anew to show the end", page)
		}
	}
	b.photograph(filepath.Join(folder, "backups.png"))
	b.open("/admin/schedules")
	b.press("button[name=theme][value=light]")
	for page, name := range map[string]string{"": "overview", "/jobs": "jobs", "/analytics": "analytics"} {
		b.open("/admin" + page)
		b.photograph(filepath.Join(folder, name+".png"))
	}
	b.press("button[name=theme][value=dark]")
	b.open("/admin")
	b.photograph(filepath.Join(folder, "overview-dark.png"))
	b.quietConsole()
}

// photograph keeps what a window shows.
func (b *browser) photograph(file string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
