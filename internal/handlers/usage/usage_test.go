package usage

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// kept is a history that says when sizes were kept last.
type kept struct {
	age   time.Duration
	ever  bool
	sizes map[string]int64
}

func (k *kept) SizesAge(context.Context) (time.Duration, bool, error) { return k.age, k.ever, nil }

func (k *kept) KeepSizes(_ context.Context, sizes map[string]int64) error {
	k.sizes = sizes
	return nil
}

func TestSizesAreKeptOnceAnHour(t *testing.T) {
	root := t.TempDir()
	for name, size := range map[string]int{"storage/logs/laravel.log": 700, "storage/logs/old/a.log": 30,
		"storage/framework/cache/x": 5, "public/storage/a.jpg": 11} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := jobstest.Migrated(t, jobstest.SQLite)
	history := &kept{}
	m := Meter{Site: &cms.Site{DB: db.DB, Root: root, Env: cms.Env{}}, History: history,
		Uploads: func() string { return filepath.Join(root, "public", "storage") }}
	items, err := m.Items(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Item{}
	for _, x := range items {
		byName[x.Name] = x
	}
	if got, want := byName["storage/logs"], (Item{"storage/logs", "logs", 730, 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := m.Keep(t.Context()); err != nil || history.sizes["logs"] != 730 || history.sizes["media"] != 11 ||
		history.sizes["cache"] != 5 || history.sizes["table"] == 0 {
		t.Errorf("kept %v, %v", history.sizes, err)
	}
	history.sizes, history.ever, history.age = nil, true, 59*time.Minute
	if err := m.Keep(t.Context()); err != nil || history.sizes != nil {
		t.Errorf("within the hour %v, %v", history.sizes, err)
	}
	history.age = time.Hour
	if err := m.Keep(t.Context()); err != nil || history.sizes == nil {
		t.Errorf("after an hour %v, %v", history.sizes, err)
	}
}
