package saved_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/saved"
)

func TestSavedFiltersAreTheirOwnersOwnAndBounded(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s, ctx := saved.NewStore(jobstest.Migrated(t, engine).DB, time.Now), t.Context()
			save := func(owner, list, name, query string) error {
				return s.Save(ctx, owner, saved.Filter{List: list, Name: name, Query: query})
			}
			for range 2 { // the second replaces the first
				if err := save("an", "jobs", "Thư hỏng", "type=mail.send"); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(save("an", "jobs", "thư hỏng", "b=1"), save("an", "runs", "Thư hỏng", "c=1"),
				save("binh", "jobs", "other", "d=1")); err != nil {
				t.Fatal(err)
			}
			if list, err := s.Of(ctx, "an", "jobs"); err != nil || len(list) != 2 {
				t.Errorf("%+v %v", list, err)
			}
			if _, err := s.Delete(ctx, "an", "jobs", "other"); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("another's filter is deleted: %v", err)
			}
			f, err := s.Delete(ctx, "an", "jobs", "Thư hỏng")
			if err != nil || f.Query != "type=mail.send" {
				t.Errorf("%+v %v", f, err)
			}
			if list, err := s.Of(ctx, "an", "runs"); err != nil || len(list) != 1 {
				t.Errorf("another list's filter went, too: %+v %v", list, err)
			}
			for _, bad := range [][2]string{{"", "a=1"}, {strings.Repeat("x", saved.MaxName+1), "a=1"}, {"a\nb", "a=1"},
				{" a", "a=1"}, {"a", strings.Repeat("x", 1001)}} {
				if err := save("an", "jobs", bad[0], bad[1]); !errors.Is(err, jobs.ErrInvalid) {
					t.Errorf("%.20q %.20q: %v", bad[0], bad[1], err)
				}
			}
			for i := range saved.Most {
				if err = save("cuc", "jobs", fmt.Sprint(i), "a=1"); err != nil {
					t.Fatal(err)
				}
			}
			if err := save("cuc", "runs", "one more", "a=1"); !errors.Is(err, saved.ErrFull) {
				t.Errorf("filter %d: %v", saved.Most+1, err)
			}
			if err := save("cuc", "jobs", "7", "a=2"); err != nil {
				t.Errorf("a full list takes no replacement: %v", err)
			}
		})
	}
}
