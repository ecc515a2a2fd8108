package storage

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A clock that is hours away from the store's breaks no signature for long: the
// store refuses the first request, its answer says the time, and all further
// ones are signed by that.
func TestAWrongClockIsCorrectedByTheStores(t *testing.T) {
	for _, away := range []time.Duration{2 * time.Hour, -30 * time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			var refused, taken atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				now := time.Now().Add(away)
				w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
				signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
				if err != nil || now.Sub(signed).Abs() > 15*time.Minute {
					refused.Add(1)
					w.Header().Set("Content-Type", "application/xml")
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w,
						`<?xml version="1.0"?><Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the current time is too large.</Message></Error>`)
					return
				}
				taken.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("ETag", `"x"`)
			}))
			t.Cleanup(server.Close)
			store := at(t, server.URL)
			for i := range 5 {
				if err := store.Put(t.Context(), fmt.Sprint("a", i), strings.NewReader("text"),
					PutOptions{}); err != nil {
					t.Fatalf("object %d: %v", i, err)
				}
			}
			if refused.Load() > 1 || taken.Load() < 5 {
				t.Errorf("%d refused, %d taken", refused.Load(), taken.Load())
			}
			body, _, err := store.Open(context.WithoutCancel(t.Context()), "a1")
			if err != nil {
				t.Fatal(err)
			}
			body.Close()
		})
	}
}

// A store whose own clock stands still cannot be satisfied by any correction; the
// error then says what is wrong and what to do.
func TestAClockThatCannotBeCorrectedIsExplained(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Date", "Thu, 01 Jan 2026 04:00:00 GMT")
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w,
			`<?xml version="1.0"?><Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>`)
	}))
	t.Cleanup(server.Close)
	store := at(t, server.URL)
	err := store.Put(t.Context(), "a", strings.NewReader("text"), PutOptions{})
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, part := range []string{"this host's clock", "2026-01-01 04:00:00 UTC", "NTP",
		"403 RequestTimeTooSkewed: The difference is too large."} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "operation error") || asked.Load() > 4 {
		t.Errorf("%d requests; %v", asked.Load(), err)
	}
}
