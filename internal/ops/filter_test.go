package ops_test

import (
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestFilterIsRead(t *testing.T) {
	q, err := url.ParseQuery(
		"status=failed,queued&status=failed&type=a.b&queue=x%20y&text=text&cause=c&since=2h&until=2026-11-22&ids=1,2")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ops.FilterOf(q).Parse(now)
	want := jobs.Filter{UUIDs: []string{"1", "2"}, Statuses: []jobs.Status{jobs.StatusFailed, jobs.StatusQueued},
		Types: []string{"a.b"}, Queues: []string{"x", "y"},
		Text: "text", Cause: "c", Since: now.Add(-2 * time.Hour), Until: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("%+v (%v)", f, err)
	}
}

func TestFilterIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		filter ops.Filter
		field  string
	}{
		"status":      {ops.Filter{Status: []string{"broken"}}, "status"},
		"since":       {ops.Filter{Since: "soon"}, "since"},
		"until":       {ops.Filter{Until: "-2h"}, "until"},
		"many ids":    {ops.Filter{IDs: make([]string, 1001)}, ""},
		"many states": {ops.Filter{Status: slices.Repeat([]string{"failed"}, 1001)}, ""},
		"long text":   {ops.Filter{Text: strings.Repeat("a", 1001)}, ""},
		"long cause":  {ops.Filter{Cause: strings.Repeat("a", 192)}, ""},
		"binary":      {ops.Filter{Queue: []string{"\xff"}}, ""},
		"zero byte":   {ops.Filter{Type: []string{"a\x00"}}, ""},
	} {
		_, err := c.filter.Parse(now)
		var refusal *ops.Refusal
		if !errors.Is(err, jobs.ErrInvalid) || !errors.As(err, &refusal) || refusal.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzFilter holds that any query is read within the bounds or refused, that what is
// read is text that a database takes, and that a filter survives being written.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"", "status=failed&since=2h", "ids=a,b&ids=c&text=%00",
		"until=2026-11-21T15:04:05Z&type=%ff", "since=9999999d", "queue=,%20,&cause=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		read := ops.FilterOf(q)
		parsed, err := read.Parse(now)
		if err != nil {
			if !errors.Is(err, jobs.ErrInvalid) || !utf8.ValidString(err.Error()) || len(err.Error()) > 400 {
				t.Errorf("%q is refused by %q", query, err)
			}
			return
		}
		if again := ops.FilterOf(read.Query()); !reflect.DeepEqual(again, read) {
			t.Errorf("%q is written as %+v, not %+v", query, again, read)
		}
		for _, text := range append([]string{parsed.Text, parsed.Cause}, slices.Concat(parsed.UUIDs, parsed.Types,
			parsed.Queues)...) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(parsed.UUIDs) > 1000 {
				t.Errorf("%q becomes %q", query, text)
			}
		}
		for _, at := range []time.Time{parsed.Since, parsed.Until} {
			if !at.IsZero() && (at.Location() != time.UTC || at.Year() > 9999) {
				t.Errorf("%q becomes the time %s", query, at)
			}
		}
	})
}

func TestNarrows(t *testing.T) {
	if !(ops.Filter{}).Empty() || (ops.Filter{Status: []string{"failed"}}).Narrows() ||
		!(ops.Filter{Cause: "c"}).Narrows() {
		t.Error("a status alone chooses all jobs of it, a cause fewer")
	}
}
