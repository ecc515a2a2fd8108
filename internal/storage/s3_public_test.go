package storage

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
)

// What visitors read is sent with the ACL public-read, as the CMS sends it. A bucket that
// refuses ACLs takes it without, and is asked once.
func TestPublicObjectsAreReadableByVisitors(t *testing.T) {
	for name, refusal := range map[string]string{
		"a bucket with ACLs": "", "a bucket without ACLs": "AccessControlListNotSupported",
		"a key without the right": "AccessDenied"} {
		t.Run(name, func(t *testing.T) {
			f := newFaultyS3(t)
			s := f.store(t, nil)
			var sent []string
			f.Break(func(w http.ResponseWriter, r *http.Request) bool {
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

// Who may read an object is asked of its ACL; a bucket that shows none is asked once.
func TestPrivateObjectsAreKnownByTheirACL(t *testing.T) {
	f := newFaultyS3(t)
	const grant = `<Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="%s">%s</Grantee>` +
		`<Permission>%s</Permission></Grant>`
	const owner, group = `<ID>me</ID>`, `<URI>http://acs.amazonaws.com/groups/global/%s</URI>`
	grants := map[string]string{
		"public": fmt.Sprintf(grant, "Group", fmt.Sprintf(group, "AllUsers"), "READ"),
		"staff":  fmt.Sprintf(grant, "Group", fmt.Sprintf(group, "AuthenticatedUsers"), "READ"),
		"hidden": fmt.Sprintf(grant, "Group", fmt.Sprintf(group, "AllUsers"), "READ_ACP"), "own": "",
	}
	var asked atomic.Int64
	refusal := ""
	f.Break(func(w http.ResponseWriter, r *http.Request) bool {
		if !r.URL.Query().Has("acl") {
			return false
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "application/xml")
		if refusal != "" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>"+refusal+"</Code><Message>no</Message></Error>")
			return true
		}
		_, _ = io.WriteString(w, "<AccessControlPolicy><Owner><ID>me</ID></Owner><AccessControlList>"+
			fmt.Sprintf(grant, "CanonicalUser", owner, "FULL_CONTROL")+grants[path.Base(r.URL.Path)]+
			"</AccessControlList></AccessControlPolicy>")
		return true
	})
	s := f.store(t, nil)
	for key := range grants {
		if private, err := s.Private(t.Context(), key); err != nil || private != (key != "public") {
			t.Errorf("%s is private: %t, %v", key, private, err)
		}
	}
	for _, refusal = range []string{"AccessDenied", "NotImplemented", "AccessControlListNotSupported"} {
		s := f.store(t, nil)
		asked.Store(0)
		for range 3 {
			if private, err := s.Private(t.Context(), "own"); err != nil || private {
				t.Errorf("%s: private: %t, %v", refusal, private, err)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("%s: asked %d times", refusal, asked.Load())
		}
	}
	refusal = "InternalError"
	if _, err := f.store(t, func(c *S3Config) { c.Retries = 1 }).Private(t.Context(), "own"); err == nil {
		t.Error("a fault of the store is taken for an answer")
	}
}
