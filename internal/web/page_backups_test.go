package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
)

// bucketSite has a bucket besides, which goes away.
type bucketSite struct {
	*features
	gone, alone *atomic.Bool // alone: there is nothing but the bucket
}

var errRefused = fmt.Errorf("%w: destination s3: dial tcp: connection refused", web.ErrUnavailable)

func (h bucketSite) Backups(ctx context.Context) ([]backups.Backup, error) {
	switch {
	case !h.gone.Load():
		list, err := h.features.Backups(ctx)
		return append(list, backups.Backup{ID: "far@s3", Destination: "s3", Size: 6, CreatedAt: noon}), err
	case h.alone.Load():
		return nil, errRefused
	}
	list, err := h.features.Backups(ctx)
	if err == nil {
		err = errRefused
	}
	return list, err
}

func (h bucketSite) OpenBackup(ctx context.Context, id string) (io.ReadCloser, backups.Backup, error) {
	if h.gone.Load() {
		return nil, backups.Backup{}, errRefused
	}
	return h.features.OpenBackup(ctx, id)
}

func (h bucketSite) DeleteBackup(ctx context.Context, id string) error {
	if h.gone.Load() {
		return errRefused
	}
	return h.features.DeleteBackup(ctx, id)
}

func (h bucketSite) PlanRestore(ctx context.Context, _ string, part backups.RestorePart) (backups.RestorePlan, error) {
	if h.gone.Load() {
		return backups.RestorePlan{}, errRefused
	}
	return h.features.PlanRestore(ctx, "b.tar.zst", part)
}

func (h bucketSite) RestoreBackup(ctx context.Context, id string, part backups.RestorePart, confirm string,
	allow backups.RestoreAllowance) (jobs.Receipt, error) {
	if h.gone.Load() {
		return jobs.Receipt{}, errRefused
	}
	return h.features.RestoreBackup(ctx, id, part, confirm, allow)
}

func newBucketSite(t *testing.T) (*site, bucketSite) {
	h := bucketSite{gone: &atomic.Bool{}, alone: &atomic.Bool{}}
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		h.features = c.Schedules.(*features)
		c.Parts = feature.Ports{Backups: h}
	})
	return s, h
}

// TestOnePlaceThatIsAwayHidesNoOther has two places, one of which does not
// answer: it is named, and what the other holds is listed.
func TestOnePlaceThatIsAwayHidesNoOther(t *testing.T) {
	s, h := newBucketSite(t)
	h.gone.Store(true)
	s.visitor(t).signIn("admin").get("/admin/backups").sees("Not all backups are listed",
		"destination s3: dial tcp: connection refused", "b.tar.zst")
	s.visitor(t).signIn("admin").get("/admin").sees("Backup storage is unreachable")
	var list backups.BackupList
	s.admin("GET", "/api/v1/backups", nil).want(t, http.StatusOK).into(t, &list)
	if len(list.Items) != 1 || list.Items[0].ID != "b.tar.zst" ||
		!strings.Contains(list.Unavailable, "destination s3") {
		t.Errorf("%+v", list)
	}
}

// TestTheAPISaysThatThePlaceOfTheBackupsIsAway asks for everything that needs it.
func TestTheAPISaysThatThePlaceOfTheBackupsIsAway(t *testing.T) {
	s, h := newBucketSite(t)
	h.gone.Store(true)
	h.alone.Store(true)
	for _, ask := range [][2]string{{"GET", "/api/v1/backups"}, {"DELETE", "/api/v1/backups/far@s3"},
		{"GET", "/api/v1/backups/far@s3/download"}} {
		a := s.admin(ask[0], ask[1], nil).want(t, http.StatusServiceUnavailable)
		var p web.Problem
		a.into(t, &p)
		if !strings.Contains(p.Detail, "its keys and the network, then try again") ||
			!strings.Contains(p.Detail, "destination s3") || a.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %+v", ask[0], ask[1], p)
		}
	}
}

// TestFormsSayThatThePlaceOfTheBackupsIsAway presses the buttons of a page that
// was loaded before the bucket went away, in both languages.
func TestFormsSayThatThePlaceOfTheBackupsIsAway(t *testing.T) {
	for _, path := range []string{"/admin/backups/far@s3/delete", "/admin/backups/far@s3/restore"} {
		for lang, says := range map[string]string{"en": "Check its address, its keys and the network",
			"vi": "Hãy kiểm tra địa chỉ, khóa truy cập và mạng"} {
			for _, alone := range []bool{true, false} {
				s, h := newBucketSite(t)
				v := s.visitor(t).signIn("admin").press("/admin/look", "lang", lang, "back", "/admin/backups").get(
					"/admin/backups").sees("far@s3")
				h.gone.Store(true)
				h.alone.Store(alone)
				v.press(path)
				if v.status != http.StatusServiceUnavailable || !strings.Contains(v.page, says) ||
					!strings.Contains(v.page, "destination s3: dial tcp: connection refused") {
					t.Errorf("%s in %s, alone %v: %d\n%s", path, lang, alone, v.status, v.page)
				}
			}
		}
	}
	s, h := newBucketSite(t)
	v := s.visitor(t).signIn("admin").get("/admin/backups").press("/admin/backups/far@s3/restore").sees("sure")
	h.gone.Store(true) // between the question and the word
	v.press("sure", "typed", "cms-all")
	if v.status != http.StatusServiceUnavailable {
		t.Errorf("%d\n%s", v.status, v.page)
	}
}

// TestFaultsOfARepositoryAreSaidWithTheirRemedies reads them in both languages.
func TestFaultsOfARepositoryAreSaidWithTheirRemedies(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	for language, texts := range map[string][]string{
		"en": {"at local cannot be read: 8.", "backup.dir, storage.s3", "at local is damaged: 8.", "Rename the folder “repository”",
			"No age identity here opens", "backup.age_identities", "left a lock", "cmsjobs backup prune removes it",
			"not verified for more than 8 days.", "“Verify the newest” does it."},
		"vi": {"Không đọc được kho tệp tại local: 8.", "Kiểm tra nơi lưu", "bị hỏng: 8.", "sẽ tạo kho mới.",
			"Không khóa age nào", "Ghi tệp của khóa đúng", "để lại khóa", "gỡ khóa đó", "trong hơn 8 ngày.",
			"“Kiểm tra bản mới nhất” sẽ làm việc đó."},
	} {
		v := s.visitor(t)
		v.signIn("admin")
		v.client.Jar.SetCookies(mustParse(t, v.base+"/admin/"), []*http.Cookie{{Name: "cmsjobs_lang", Value: language, Path: "/admin"}})
		page := v.get("/admin/backups").page
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("%s: %q is not on the page", language, text)
			}
		}
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestARestoreIsAskedForBesideTheList goes from the row of a backup to its plan, types the
// wrong word and the right one, without leaving the list; then without scripts.
func TestARestoreIsAskedForBesideTheList(t *testing.T) {
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, newSite(t, jobstest.SQLite, furnished))
	b.signIn("admin")
	const button = `document.getElementById("files-b.tar.zst")`
	ask := func() {
		b.open("/admin/backups")
		b.until(`!!document.querySelector("details.restore") && !document.querySelector("#live[hx-trigger]")`) // all is counted
		eval[bool](b, `(document.querySelector("details.restore").open = true, `+button+`.focus(), `+button+`.click(), true)`)
	}
	ask()
	b.until(`!!document.querySelector("dialog.sheet[open] form.confirm") && document.activeElement.id === "typed"`)
	b.sees("Creates 2 files and overwrites 3")
	for _, v := range serious(b.violations(string(axe), everything)) {
		t.Errorf("%s %s: %+v", v.Impact, v.Help, v.Nodes)
	}
	b.fill("#typed", "cms-wrong")
	b.click("#yes")
	b.until(`!!document.querySelector("dialog.sheet[open] [role=alert]")`)
	b.click("dialog.sheet a.btn") // cancel
	b.until(`!document.querySelector("dialog.sheet").open && document.activeElement === ` + button)
	if at := eval[string](b, `location.pathname`); at != "/admin/backups" {
		t.Errorf("the list was left for %s", at)
	}
	ask()
	b.fill("dialog.sheet #typed", "cms-files")
	b.press("dialog.sheet #yes")
	b.until(`location.pathname + location.search.slice(0, 5) === "/admin/backups?job="`)
	b.scripts(false)
	b.open("/admin/backups")
	if eval[bool](b, `!`+button) { // counted after the first load
		b.open("/admin/backups")
	}
	b.press(`[id="files-b.tar.zst"]`)
	b.sees("Creates 2 files and overwrites 3")
	b.until(`location.pathname.endsWith("/restore") && !document.querySelector("dialog.sheet")`)
	b.quietConsole()
}
