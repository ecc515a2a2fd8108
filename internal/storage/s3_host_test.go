package storage

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// The bucket's name in the host (bucket.s3.test), as AWS wants it: all requests, uploads in
// parts.
func TestTheBucketsNameIsInTheHost(t *testing.T) {
	byPath := newVersity(t)
	c := byPath.config
	server := strings.TrimPrefix(byPath.config.Endpoint, "http://")
	_, port, _ := net.SplitHostPort(server)
	var mu sync.Mutex
	var dialled []string
	c.PathStyle, c.Endpoint = false, fmt.Sprintf("http://%s:%s", storagetest.VirtualDomain, port)
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		dialled = append(dialled, address)
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}
	s, err := NewS3(c)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("0123456789abcdef", (20<<20)/16)
	put(t, s, "ü 1/large", large)
	put(t, s, "small", "x")
	if got := read(t, s, "ü 1/large"); got != large {
		t.Errorf("%d bytes are read, want %d", len(got), len(large))
	}
	if got := keys(t, byPath, ""); !slices.Equal(got, []string{"small", "ü 1/large"}) {
		t.Errorf("by the path there are %v", got)
	}
	if err := s.DeleteAll(t.Context(), []string{"small", "ü 1/large"}); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, s, ""); len(got) != 0 {
		t.Errorf("left are %v", got)
	}
	noLeftovers(t, s)
	want := fmt.Sprintf("%s.%s:%s", c.Bucket, storagetest.VirtualDomain, port)
	if len(dialled) == 0 || slices.ContainsFunc(dialled, func(a string) bool { return a != want }) {
		t.Errorf("connections went to %v, want %s", dialled, want)
	}
}
