package storage

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// What visitors read is sent with the ACL public-read, as the CMS sends it. A bucket that
// refuses ACLs takes it without, and is asked once.
func TestPublicObjectsAreReadableByVisitors(t *testing.T) {
	for name, refusal := range map[string]string{
		"a bucket with ACLs": "", "a bucket without ACLs": "AccessControlListNotSupported",
		"a key without the right": "AccessDenied"} {
		t.Run(name, func(t *testing.T) {
			f := newFakeS3(t)
			s := f.store(t, nil)
			var sent []string
			f.breaks(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut {
					return false
				}
				sent = append(sent, r.Header.Get("X-Amz-Acl"))
				if refusal == "" || r.Header.Get("X-Amz-Acl") == "" {
					return false
				}
				w.Header().Set("Content-Type", "application/xml")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, "<Error><Code>"+refusal+"</Code><Message>no</Message></Error>")
				return true
			})
			for _, key := range []string{"a.jpg", "b.jpg"} {
				if err := s.Put(t.Context(), key, strings.NewReader("picture "+key),
					PutOptions{Public: true}); err != nil {
					t.Fatal(err)
				}
				if got := read(t, s, key); got != "picture "+key {
					t.Errorf("%s holds %q", key, got)
				}
			}
			put(t, s, "private", "x")
			want := "public-read,public-read,"
			if refusal != "" {
				want = "public-read,,,"
			}
			if got := strings.Join(sent, ","); got != want {
				t.Errorf("the ACLs sent are %q, want %q", got, want)
			}
		})
	}
}

// A real store that refuses ACLs, and a public object that is too large to be sent twice.
func TestPublicObjectsOfARealStore(t *testing.T) {
	s := newVersity(t)
	large := strings.Repeat("0123456789abcdef", (9<<20)/16)
	for key, content := range map[string]string{"small": "x", "large": large} {
		if err := s.Put(t.Context(), key, strings.NewReader(content), PutOptions{Public: true}); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s, key); got != content {
			t.Errorf("%s has %d bytes, want %d", key, len(got), len(content))
		}
	}
}
