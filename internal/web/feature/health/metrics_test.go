package health

import (
	"fmt"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// A program that dispatches jobs of ever new classes makes no series without end.
func TestClassesOfPHPHaveFewSeries(t *testing.T) {
	m := NewMetrics("test", func(string) bool { return false })
	for i := range 200 {
		m.EndedPHP(jobs.Settlement{Claimed: jobs.Claimed{Job: jobs.Job{Type: fmt.Sprintf(`App\Jobs\J%d`, i),
			Queue: "default"}}, Outcome: jobs.Completed})
	}
	found, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.GetName() != "cmsjobs_jobs_processed_total" {
			continue
		}
		classes := map[string]float64{}
		for _, x := range f.GetMetric() {
			for _, l := range x.GetLabel() {
				if l.GetName() == "type" {
					classes[l.GetValue()] += x.GetCounter().GetValue()
				}
			}
		}
		if len(classes) != 51 || classes[`App\Jobs\J0`] != 1 || classes["other"] != 150 {
			t.Errorf("%d series: %v", len(classes), classes)
		}
		return
	}
	t.Error("no runs are counted")
}
