package web_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// TestAPauseIsUndoneByAPress: no question, and a button on the next page.
func TestAPauseIsUndoneByAPress(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"cache.clear"}`)
	paused := func(want bool) {
		t.Helper()
		list, err := s.history.PausedQueues(t.Context())
		if err != nil || (len(list) == 1) != want {
			t.Errorf("paused: %v %v", list, err)
		}
	}
	v := s.visitor(t).signIn("operator")
	v.get("/admin/queues").press("cmsjobs/pause").sees("is paused. 1 job waits in it", `id="undo"`)
	paused(true)
	v.press(`id="undo"`).sees("is active again", `id="undo"`)
	paused(false)
	v.press(`id="undo"`).sees("is paused")
	paused(true)
	if v.get("/admin/queues"); strings.Contains(v.page, `id="undo"`) {
		t.Error("the button stays")
	}
	v.get("/admin/schedules").press(`value="pause"`).sees("is paused", `id="undo"`).press(`id="undo"`).sees("is active again")
}

// A button that was left open for long does nothing: others may have changed it since.
func TestAnUndoThatComesTooLateDoesNothing(t *testing.T) {
	var ahead atomic.Int64
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	s.enqueue(`{"type":"cache.clear"}`)
	v := s.visitor(t).signIn("operator")
	v.get("/admin/queues").press("cmsjobs/pause").sees(`id="undo"`)
	ahead.Store(int64(3 * time.Minute))
	v.press(`id="undo"`).sees("too late to undo")
	if list, err := s.history.PausedQueues(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
	v.get("/admin/queues").press("cmsjobs/continue").press(`id="undo"`, "undo", "99999999999.x").sees("too late to undo")
}

// TestTheRightsToUndoAreCheckedWhenItIsPressed: the form is one of the pages' own.
func TestTheRightsToUndoAreCheckedWhenItIsPressed(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	id := s.enqueue(`{"type":"mail.send","delay":3600,"payload":{"to":"a@b.example"}}`)
	operator := s.visitor(t).signIn("operator")
	operator.get("/admin/jobs/" + id).press(`id="cancel"`).sees(`id="undo"`)
	viewer := s.visitor(t).signIn("viewer").get("/admin/jobs/" + id)
	viewer.page = operator.page // as if somebody had sent it
	if viewer.press(`id="undo"`); viewer.status != http.StatusForbidden {
		t.Errorf("a viewer undoes: %d", viewer.status)
	}
	if n := s.db.Get(new(int), "SELECT id FROM jobs"); n == nil {
		t.Error("the job is back")
	}
}

// TestANoticeOfSomebodyElseIsNotShown: another site below the same domain can set a
// cookie, but not one that offers an action.
func TestANoticeOfSomebodyElseIsNotShown(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	v := s.visitor(t).signIn("admin")
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"Text":"Click here","Undo":{"Path":"/admin/workers/restart"}}`))
	u, err := url.Parse(v.base + "/admin")
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"", ".", ".eA"} {
		v.client.Jar.SetCookies(u, []*http.Cookie{{Name: "cmsjobs_notice", Value: text + mark, Path: "/admin"}})
		if v.get("/admin/jobs"); strings.Contains(v.page, "Click here") {
			t.Errorf("the notice with the mark %q is shown", mark)
		}
	}
}

// TestACancelledJobComesBack with its payload, queue and time, as one job however often
// the button is pressed.
func TestACancelledJobComesBack(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	id := s.enqueue(`{"type":"mail.send","delay":3600,"queue":"odd","payload":{"to":"a@b.example","password":"hunter2"}}`)
	var before, after ops.JobView
	s.admin("GET", "/api/v1/jobs/"+id, nil).want(t, 200).into(t, &before)
	v := s.visitor(t).signIn("operator")
	v.get("/admin/jobs?status=queued").press(`id="c-`+id).sees("is cancelled", `id="undo"`)
	if v.at != "/admin/jobs?status=queued" {
		t.Errorf("the person is led to %s", v.at)
	}
	page := v.page
	v.press(`id="undo"`).sees("waits in its queue again")
	at := v.at
	v.page = page
	if v.press(`id="undo"`); v.at != at {
		t.Errorf("pressed twice: %s and %s", at, v.at)
	}
	var rows int
	if err := s.db.Get(&rows, "SELECT COUNT(*) FROM jobs WHERE payload LIKE '%hunter2%'"); err != nil || rows != 1 {
		t.Errorf("%d rows have the payload, %v", rows, err)
	}
	s.admin("GET", "/api/v1/jobs/"+strings.TrimPrefix(at, "/admin/jobs/"), nil).want(t, 200).into(t, &after)
	if d := after.RunAt.Sub(before.RunAt).Abs(); d > 2*time.Second || after.Queue != "odd" || after.Status != "queued" {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// A job that the history does not keep whole is lost when it is cancelled: the person is
// asked first.
func TestWhatCannotComeBackIsAskedFirst(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	v := s.visitor(t).signIn("operator")
	large := s.enqueue(`{"type":"mail.send","delay":3600,"payload":{"to":"a@b.example","body":"` +
		strings.Repeat("x", 5000) + `"}}`)
	v.get("/admin/jobs/"+large).press(`id="cancel"`).sees("never run", "Yes, do it").press("sure").sees(
		"The job is cancelled")
	if strings.Contains(v.page, `id="undo"`) {
		t.Error("what is lost is offered back")
	}
	s.work()
	other := s.enqueue(`{"type":"cache.clear"}`)
	s.work()
	s.do("POST", "/admin/jobs/"+other+"/restore", "", bearer(s.tokens[access.Operate])).want(t, http.StatusConflict)
}

// Who may not take the change back is asked before it, as they were before there was a
// button.
func TestWhoMayNotUndoIsAskedFirst(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) { c.AllowedTopics = []string{"cache.clear"} })
	id := s.enqueue(`{"type":"mail.send","delay":3600,"payload":{"to":"a@b.example"}}`)
	v := s.visitor(t).signIn("operator")
	v.get("/admin/jobs/"+id).press(`id="cancel"`).sees("never run", "Yes, do it").press("sure").sees("is cancelled")
	if strings.Contains(v.page, `id="undo"`) {
		t.Error("a button is offered that would be refused")
	}
	s.do("POST", "/admin/jobs/"+id+"/restore", "", bearer(s.tokens[access.Operate])).want(t, http.StatusForbidden)
}
