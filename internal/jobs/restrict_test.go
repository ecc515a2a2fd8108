package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

type sendFile struct {
	Path string `json:"path"`
	Loud bool   `json:"loud"`
}

// What a handler refuses for good is refused before the run and in it; which
// fields are reserved is known before.
func TestARestrictionHoldsBeforeTheRunAndInIt(t *testing.T) {
	r := NewRegistry()
	kind := Kind[sendFile]{Name: "test.file"}
	ran := 0
	Handle(r, kind, func(context.Context, Job, sendFile) error { ran++; return nil })
	Restrict(r, kind, Restriction[sendFile]{
		Refuse: func(_ json.RawMessage, p sendFile) error {
			if strings.Contains(p.Path, "..") {
				return errors.New("it leaves its folder")
			}
			return nil
		},
		Reserved: func(p sendFile) []string {
			if p.Loud {
				return []string{"loud"}
			}
			return nil
		},
	})
	r.Alias("file.send", kind.Name)
	for _, c := range []struct {
		data     string
		refused  string
		reserved []string
	}{
		{`{"path":"a"}`, "", nil},
		{``, "", nil},
		{`{"path":"../a"}`, "it leaves its folder", nil},
		{`{"path":"a","loud":true}`, "", []string{"loud"}},
		{`{"path":7}`, "not as this type needs it", nil},
		{`{"path":`, "not JSON", nil},
		{`{"path":"` + strings.Repeat("a", MaxPayload) + `"}`, "bytes, 1048576 are allowed", nil},
	} {
		data := json.RawMessage(c.data)
		for _, name := range []string{kind.Name, "file.send"} {
			err := r.CheckPayload(name, data)
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s with %.40s: %v, want %q", name, c.data, err, c.refused)
			}
			if errors.Is(err, ErrTooLarge) != (len(c.data) > MaxPayload) {
				t.Errorf("%.40s is too large: %v", c.data, err)
			}
			if got := r.ReservedFields(name, data); !slices.Equal(got, c.reserved) {
				t.Errorf("%s with %.40s reserves %v, want %v", name, c.data, got, c.reserved)
			}
		}
	}
	entry, _ := r.Lookup(kind.Name)
	if err := entry.Run(t.Context(), Job{Type: kind.Name, Data: json.RawMessage(`{"path":"../a"}`)}); !IsPermanent(
		err) || ran != 0 {
		t.Errorf("a row that names ../a ran %d times and ended with %v", ran, err)
	}
	if err := entry.Run(t.Context(), Job{Type: kind.Name, Data: json.RawMessage(`{"loud":true}`)}); err != nil ||
		ran != 1 {
		t.Errorf("a row with a reserved field ran %d times and ended with %v", ran, err)
	}
}
