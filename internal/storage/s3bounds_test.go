package storage

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pour answers with begin and then 256 MiB of piece.
func pour(begin, piece string, header http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		var out io.Writer = w
		if w.Header().Get("Content-Encoding") == "gzip" {
			packed := gzip.NewWriter(w)
			defer packed.Close()
			out = packed
		}
		_, _ = io.WriteString(out, begin)
		block := strings.Repeat(piece, (64<<10)/len(piece))
		for sent := 0; sent < 256<<20; sent += len(block) {
			if _, err := io.WriteString(out, block); err != nil {
				return
			}
		}
	}
}

func TestHostileStoresCostLittle(t *testing.T) {
	const page = `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>`
	list := func(s *S3) error {
		for _, err := range s.List(t.Context(), "") {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		use    func(*S3) error
	}{
		"an endless list":      {pour(page, "<Contents/>", nil), list},
		"an endless key":       {pour(page+"<Contents><Key>", "a", nil), list},
		"elements in elements": {pour(page, "<a>", nil), list},
		"an endless error": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			pour("<Error><Code>", "a", nil)(w, r)
		}, list},
		"a bomb": {pour(page, "<Contents/>", http.Header{"Content-Encoding": {"gzip"}}), list},
		"an endless refusal of a download": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			pour("<Error><Code>", "a", nil)(w, r)
		}, func(s *S3) error { _, _, err := s.Open(t.Context(), "a"); return err }},
		"an endless answer to a deletion": {
			pour("", "a", nil), func(s *S3) error { return s.Delete(t.Context(), "a") }},
		"endless headers": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20_000 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("a", 100))
			}
		}, list},
	} {
		server := httptest.NewServer(c.answer)
		s, err := NewS3(S3Config{Bucket: "bucket", Endpoint: server.URL, PathStyle: true, AccessKey: "k",
			SecretKey: "s", Retries: 1})
		if err != nil {
			t.Fatal(err)
		}
		grown := residentGrowth(t, func() { err = c.use(s) })
		server.Close()
		if grown > 64<<20 {
			t.Errorf("%s: the memory grew by %d MiB", name, grown>>20)
		}
		if name != "an endless answer to a deletion" && err == nil { // nobody reads that one
			t.Errorf("%s is taken", name)
		}
		if err != nil && len(err.Error()) > 4000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

// residentGrowth is jobstest.ResidentGrowth, which this package may not import.
func residentGrowth(t *testing.T, do func()) int64 {
	t.Helper()
	resident := func() int64 {
		raw, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Skip("this system does not tell the resident memory: ", err)
		}
		var size, pages int64
		_, err = fmt.Sscan(string(raw), &size, &pages)
		if err != nil {
			t.Error(err)
		}
		return pages * int64(os.Getpagesize())
	}
	before := resident()
	most, done := before, make(chan struct{})
	go func() { defer close(done); do() }()
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case <-done:
			tick.Stop()
			return (most - before) / raceFactor
		case <-tick.C:
			most = max(most, resident())
		}
	}
}

// A page may be large, an object larger: only what is read as a whole is bounded.
func TestObjectsAreNotBounded(t *testing.T) {
	f := newFaultyS3(t)
	s := f.store(t, nil)
	if err := s.Put(t.Context(), "large", io.LimitReader(zeros{}, 3*maxAnswer), PutOptions{}); err != nil {
		t.Fatal(err)
	}
	r, _, err := s.Open(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n != 3*maxAnswer || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestAStalledStoreEnds(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		for strings.HasSuffix(r.URL.RawQuery, "drip") {
			if _, err := io.WriteString(w, "a"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	for name, c := range map[string]struct {
		url           string
		answer, stall time.Duration
	}{
		"an answer": {server.URL, 50 * time.Millisecond, time.Hour},
		"a drip":    {server.URL + "?drip", 50 * time.Millisecond, time.Hour},
		"an object": {server.URL + "?x-id=GetObject", time.Hour, 50 * time.Millisecond},
	} {
		client := &http.Client{Transport: &boundedTransport{base: newTransport(nil, nil), answer: c.answer, stall: c.stall}}
		// Without the bounds the context's own end comes first, which is another error.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(answer.Body); !errors.Is(err, ErrUnbounded) {
			t.Errorf("%s: %v", name, err)
		}
		answer.Body.Close()
		client.CloseIdleConnections()
	}
}
