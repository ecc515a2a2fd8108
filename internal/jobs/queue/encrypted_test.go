package queue

import (
	"context"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/encryption"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

type letter struct {
	To   string            `json:"to"`
	Body string            `json:"body" encrypted:"true"`
	Data map[string]string `json:"data" encrypted:"true"`
}

// What a type calls encrypted is unreadable in every table that keeps the payload, and the
// handler gets it as it was, also from rows that others wrote as plain text.
func TestEncryptedFieldsAreUnreadableInTheTables(t *testing.T) {
	for _, v := range variants() {
		if v.Wall {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			o := f.Options()
			kind := jobs.Kind[letter]{Name: "test.letter"}
			var got []letter
			jobs.Handle(o.Registry, kind, func(_ context.Context, _ jobs.Job, l letter) error {
				got = append(got, l)
				return nil
			})
			keys, err := encryption.New([]byte("0123456789abcdef"))
			if err != nil {
				t.Fatal(err)
			}
			o.Registry.SetKeys(keys)
			s := open1(t, f.DB, o)
			f.setStore(s)
			sent := letter{"zoe@example.com", "the reset link", map[string]string{"url": "/reset/abc"}}
			f.MustEnqueue(kind.New(sent))
			column, raw := s.tables.Layout.Table().Payload, ""
			read := func(table, column string) {
				t.Helper()
				if found, err := s.tables.QueryRow(bg, f.DB.DB, []any{&raw}, "SELECT "+column+" FROM "+table); err != nil ||
					!found {
					t.Fatalf("%s: %v, %v", table, found, err)
				}
				if strings.Contains(raw, "reset") || !strings.Contains(raw, "zoe@example.com") {
					t.Errorf("%s holds %s", table, raw)
				}
			}
			read("jobs", column)
			run := func() jobs.Claimed {
				t.Helper()
				claimed := f.MustClaim(1)
				if len(claimed) != 1 {
					t.Fatalf("%d jobs", len(claimed))
				}
				entry, _ := o.Registry.Lookup(kind.Name)
				if err := entry.Run(bg, claimed[0].Job); err != nil {
					t.Fatal(err)
				}
				if last := got[len(got)-1]; last.Body != sent.Body || last.Data["url"] != sent.Data["url"] {
					t.Errorf("the handler got %+v", last)
				}
				return claimed[0]
			}
			f.MustSettle(tablestest.End(run(), jobs.Failed))
			read("failed_jobs", "payload")
			read("cmsjobs_runs", "data")
			f.InsertRaw("default", `{"type":"test.letter","data":{"to":"zoe@example.com","body":"the reset link",`+
				`"data":{"url":"/reset/abc"}}}`)
			end := tablestest.End(run(), jobs.Completed)
			end.FollowUps = []jobs.Spec{kind.New(sent)}
			f.MustSettle(end)
			read("jobs", column)
			run()
		})
	}
}
