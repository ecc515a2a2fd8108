package backup

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

func TestOneDeadDestinationKillsNoOther(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	dead := &failing{Store: local(t, t.TempDir()), left: 1000, forever: true}
	once := &failing{Store: local(t, t.TempDir()), left: 1000}
	s.c.Destinations["dead"], s.c.Destinations["once"] = dead, once
	h := s.handler(t)
	report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "destination dead") || report.Status != manifest.Complete {
		t.Fatalf("%+v, %v", report, err)
	}
	all, err := h.List(t.Context(), "")
	if err != nil || len(all) != 2 || all[0].Destination != "local" || all[1].Destination != "once" {
		t.Fatalf("%d backups, %v", len(all), err)
	}
	for _, o := range report.Outcomes {
		if (o.Error != "") != (o.Destination == "dead") || o.Copied != (o.Destination == "once") {
			t.Errorf("%+v", o)
		}
	}
	for _, b := range all {
		if _, err := h.Verify(t.Context(), b, manifest.LevelRestored, nil); err != nil {
			t.Error(err)
		}
	}
}

// failing is a store whose Put fails after some bytes, once or for ever.
type failing struct {
	storage.Store
	left    int64
	forever bool
	failed  bool
}

var errUnplugged = errors.New("unplugged")

func (f *failing) Put(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	if f.failed && !f.forever || strings.HasSuffix(key, probeName) {
		return f.Store.Put(ctx, key, r, o)
	}
	f.failed = true
	if _, err := io.CopyN(io.Discard, r, f.left); err != nil && err != io.EOF {
		return err
	}
	return errUnplugged
}

func TestNothingCountsWhenEveryDestinationFails(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	dest := s.c.Destinations["local"]
	h := s.handler(t)
	_, good := s.backup(t, h)
	s.c.Destinations["local"] = &failing{Store: dest, left: 1000, forever: true}
	s.clock.now = s.clock.now.Add(time.Hour)
	report, err := s.handler(t).Create(t.Context(), Request{Database: true, Files: true}, nil)
	if !errors.Is(err, errUnplugged) || report.Status != manifest.Failed {
		t.Errorf("%+v, %v", report, err)
	}
	if entries, err := os.ReadDir(s.dest); err != nil || len(entries) != 2 {
		t.Errorf("%d files lie there, %v", len(entries), err)
	}
	if _, err := h.Verify(t.Context(), good, manifest.LevelRestored, nil); err != nil {
		t.Errorf("the former backup: %v", err)
	}
}

func TestAStandstillEndsTheBackup(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.c.Destinations["stuck"] = stuck{local(t, t.TempDir())}
	s.c.Options.StallTimeout = 3 * time.Second // a slow machine moves in it
	h := s.handler(t)
	report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if err == nil || report.Status != manifest.Complete || report.Outcomes[0].Error != "" ||
		report.Outcomes[1].Error == "" {
		t.Errorf("%+v, %v", report, err)
	}
	_, err = h.Create(t.Context(), Request{Database: true, Destinations: []string{"stuck"}}, nil)
	if !errors.Is(err, ErrStalled) {
		t.Errorf("%v", err)
	}
}

// stuck is a store that takes a probe, and then nothing, and never answers.
type stuck struct{ storage.Store }

func (s stuck) Put(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	if strings.HasSuffix(key, probeName) {
		return s.Store.Put(ctx, key, r, o)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestAFullDiskIsSeenBeforeAndDuring(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	disk := t.TempDir()
	jobstest.SmallDisk(t, disk, "size=2m")
	small := local(t, disk)
	s.c.Destinations = map[string]storage.Store{"small": small}
	h := s.handler(t)
	_, err := h.Create(t.Context(), Request{Database: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Create(t.Context(), Request{Files: true}, nil); err == nil ||
		!strings.Contains(err.Error(), "MiB of free space") {
		t.Errorf("before: %v", err)
	}
	noise := make([]byte, 4<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	s.write(t, "noise", string(noise))
	s.c.Destinations["small"] = silentStore{small} // does not report its free space
	s.clock.now = s.clock.now.Add(time.Hour)
	report, err := s.handler(t).Create(t.Context(), Request{Files: true}, nil)
	if !errors.Is(err, syscall.ENOSPC) || report.Status != manifest.Failed {
		t.Errorf("during: %v, %v", report.Status, err)
	}
	if entries, err := os.ReadDir(disk); err != nil || len(entries) != 2 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
}

// silentStore hides all but the Store's own methods.
type silentStore struct{ storage.Store }

func TestS3TakesBackupsOrNothing(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	noise := make([]byte, 20<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	s.write(t, "noise", string(noise)) // several parts
	bucket := storagetest.New(t)
	store, err := storage.NewS3(storage.S3Config{Bucket: bucket.Name, Prefix: "site", Endpoint: bucket.URL,
		PathStyle: true, AccessKey: storagetest.Key, SecretKey: storagetest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	s.c.Destinations = map[string]storage.Store{"s3": store}
	h := s.handler(t)
	_, good := s.backup(t, h)
	for name, breaks := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"a part is refused": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("partNumber") != "2" {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		},
		"the connection is cut": func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("partNumber") == "2" {
				panic(http.ErrAbortHandler)
			}
			return false
		},
		"the credentials are wrong": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
			return true
		},
		"the manifest file is refused": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, ".json") {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		},
	} {
		bucket.Break(breaks)
		s.clock.now = s.clock.now.Add(time.Hour)
		report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
		if err == nil || report.Status == manifest.Complete || !strings.Contains(err.Error(), "s3://"+bucket.Name+"/site") ||
			strings.Contains(name, "credentials") && !strings.Contains(err.Error(), "check access key") {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		bucket.Break(nil)
		if left := slices.Collect(maps.Keys(objects(t, store))); len(left) != 2 {
			t.Errorf("%s left %v", name, left)
		}
		if all, err := h.List(t.Context(), ""); len(all) != 1 || all[0].ID != good.ID || err != nil {
			t.Errorf("%s: %d backups count, %v", name, len(all), err)
		}
	}
	if _, err := h.Verify(t.Context(), good, manifest.LevelRestored, nil); err != nil {
		t.Error(err)
	}
}

// TestWrongCredentialsAreNamedAndLeaveNothing has a bucket that checks who
// asks: a backup with a key that it does not know fails by name before it is
// sent, what was there stays good, and what another place took stays.
func TestWrongCredentialsAreNamedAndLeaveNothing(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	place := storagetest.New(t)
	place.Break(func(w http.ResponseWriter, r *http.Request) bool { // as AWS says it
		if strings.Contains(r.Header.Get("Authorization"), "Credential="+storagetest.Key+"/") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>InvalidAccessKeyId</Code></Error>")
		return true
	})
	bucket := func(key string) storage.Store {
		secret := storagetest.Secret
		if key != storagetest.Key {
			secret = "hunter2"
		}
		store, err := storage.NewS3(storage.S3Config{Bucket: place.Name, Endpoint: place.URL, PathStyle: true,
			AccessKey: key, SecretKey: secret})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	s.c.Destinations = map[string]storage.Store{"s3": bucket(storagetest.Key)}
	_, good := s.backup(t, s.handler(t))
	s.clock.now = s.clock.now.Add(time.Hour)

	s.c.Destinations = map[string]storage.Store{"s3": bucket("wrong"), "local": local(t, t.TempDir())}
	h := s.handler(t)
	report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "destination s3") ||
		!strings.Contains(err.Error(), "check access key") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v: %v", report.Status, err)
	}
	all, err := h.List(t.Context(), "")
	if len(all) != 1 || all[0].Destination != "local" || err == nil ||
		!strings.Contains(err.Error(), "destination s3") {
		t.Errorf("%d backups, %v", len(all), err)
	}
	if _, err := h.Digest(t.Context()); err != nil {
		t.Errorf("the week is not summed up: %v", err)
	}
	seen, err := h.Health(t.Context())
	if err != nil || !slices.ContainsFunc(seen.Warnings, func(w health.Warning) bool {
		return w.Code == "unreachable" && w.Destination == "s3"
	}) {
		t.Errorf("%+v, %v", seen, err)
	}
	if report, err := h.Create(t.Context(), Request{Database: true, Destinations: []string{"s3"}}, nil); err == nil ||
		report.Status != manifest.Failed {
		t.Errorf("%+v, %v", report, err)
	}

	s.c.Destinations = map[string]storage.Store{"s3": bucket(storagetest.Key)}
	h = s.handler(t)
	if all, err := h.List(t.Context(), ""); err != nil || len(all) != 1 || all[0].ID != good.ID ||
		len(objects(t, s.c.Destinations["s3"])) != 2 {
		t.Errorf("%d backups count, %v", len(all), err)
	}
	if _, err := h.Verify(t.Context(), good, manifest.LevelRestored, nil); err != nil {
		t.Error(err)
	}
}

// objects are the keys at a store and their sizes.
func objects(t *testing.T, s storage.Store) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		found[info.Key] = info.Size
	}
	return found
}
