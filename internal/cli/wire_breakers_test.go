package cli

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// A search engine and a bucket that are out are left alone by all their jobs,
// each under its own name.
func TestSearchEnginesAndBucketsHaveBreakers(t *testing.T) {
	t.Parallel()
	db := jobstest.Migrated(t, jobstest.SQLite)
	r := &app.Services{Breakers: breaker.New(db.DB, breaker.Config{Failures: 2}), Log: slog.New(slog.DiscardHandler)}
	ill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer ill.Close()

	client := r.SearchEngines(outbound.Options{AllowHTTP: true, AllowPrivate: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8")}})
	post := func(address string) error {
		answer, err := client.Post(address, "application/json", strings.NewReader("{}"))
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	for range 2 {
		if err := post(ill.URL); err != nil {
			t.Fatal(err)
		}
	}
	if _, waits := jobs.AsRetryAfter(post(ill.URL)); !waits {
		t.Error("a search engine that is out is asked again")
	}
	for range 3 {
		if err := post("http://10.0.0.1/"); !errors.Is(err, outbound.ErrRefused) {
			t.Errorf("an address that we refuse ourselves: %v", err)
		}
	}

	store, err := r.OpenMedia(t.Context(), cms.MediaPlace{
		Bucket: cms.MediaBucket{Name: "pictures", Endpoint: ill.URL, PathStyle: true, AccessKey: "a", Secret: "s"}})
	if err != nil {
		t.Fatal(err)
	}
	put := func() error {
		return store.Put(t.Context(), "k", strings.NewReader("x"), storage.PutOptions{ExpectedSize: 1})
	}
	for range 2 {
		if err := put(); err == nil {
			t.Fatal("a bucket that answers 503 took something")
		}
	}
	if _, waits := jobs.AsRetryAfter(put()); !waits {
		t.Error("a bucket that is out is asked again")
	}
	list, err := r.OpenBreakers(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "indexnow:"+strings.TrimPrefix(ill.URL, "http://") ||
		list[1].Name != "s3:pictures" {
		t.Errorf("open are %+v (%v)", list, err)
	}
}
