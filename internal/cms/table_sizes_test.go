package cms_test

import (
	"slices"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestTableSizes(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			site := &cms.Site{DB: jobstest.Migrated(t, engine).DB}
			list, err := site.TableSizes(t.Context())
			if err != nil || len(list) == 0 {
				t.Fatalf("TableSizes = %v, %v", list, err)
			}
			if site.DB.DriverName() != "sqlite" && !slices.ContainsFunc(list, func(s cms.TableSize) bool { return s.Name == "cmsjobs_runs" && s.Bytes > 0 }) {
				t.Errorf("cmsjobs_runs is not among %v", list)
			}
			if site.DB.DriverName() == "sqlite" && list[0].Bytes <= 0 {
				t.Errorf("the file takes %d bytes", list[0].Bytes)
			}
		})
	}
}
