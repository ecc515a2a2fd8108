package notify_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/notify"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestAChangeOfAConditionIsNeverHeldBack: begin, end and the next begin within
// a minute are three messages; chats that were notified at once are left out.
func TestAChangeOfAConditionIsNeverHeldBack(t *testing.T) {
	var posts atomic.Int64
	chat := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posts.Add(1) }))
	defer chat.Close()
	h, _ := newTestSite(t, jobstest.SQLite, notify.Channel{Type: notify.TypeCMS}, notify.Channel{
		Type: notify.TypeGeneric, URL: chat.URL}, notify.Channel{Name: "calm", Type: notify.TypeGeneric, URL: chat.URL,
		MinLevel: notify.Error})
	p := notify.Payload{Topic: "condition:no_worker", Title: "No worker runs", Level: notify.Warning}
	for _, uuid := range []string{"a", "b", "c"} {
		r, next, err := h.run(uuid, notify.Condition(p, false))
		if err != nil || r.Held || !slices.Equal(r.Channels, []string{"cms", "generic"}) || len(next) != 2 {
			t.Errorf("%+v %v %v", r, next, err)
		}
	}
	if r, _, err := h.run("d", notify.Condition(p, true)); err != nil || !slices.Equal(r.Channels, []string{"cms"}) {
		t.Errorf("told before: %+v %v", r, err)
	}
	if err := h.handler.Direct(t.Context(), p); err != nil || posts.Load() != 1 {
		t.Errorf("directly: %v, %d posts", err, posts.Load())
	}
	chat.Close()
	if err := h.handler.Direct(t.Context(), p); err == nil {
		t.Error("a chat that is gone is no error")
	}
}
