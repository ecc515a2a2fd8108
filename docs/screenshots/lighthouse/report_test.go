package main

import (
	"fmt"
	"strings"
	"testing"
)

// reportOf is a report as Lighthouse writes it, with a score of the performance.
func reportOf(performance, final string) []byte {
	return fmt.Appendf(nil, `{"requestedUrl":"http://x/admin","finalDisplayedUrl":%q,"categories":{
		"performance":{"score":%s,"auditRefs":[{"id":"total-blocking-time","weight":30},{"id":"bf-cache","weight":0}]},
		"accessibility":{"score":1,"auditRefs":[]},"best-practices":{"score":1,"auditRefs":[]},
		"seo":{"score":0.91,"auditRefs":[{"id":"meta-description","weight":1}]}},
		"audits":{"total-blocking-time":{"score":0.3,"numericValue":460,"displayValue":"460 ms"},"bf-cache":{"score":0},
		"meta-description":{"score":0},"total-byte-weight":{"score":1,"numericValue":125400}}}`, final, performance)
}

func TestALowScoreFails(t *testing.T) {
	r, err := read(reportOf("0.945", "http://x/admin"))
	if err != nil {
		t.Fatal(err)
	}
	all := []measured{{"overview", "desktop", r}}
	fault := tooLow(all)
	want := "overview on desktop has 91 in seo, less than 95: total-blocking-time 460 ms, meta-description"
	if fault == nil || fault.Error() != want {
		t.Errorf("%v, want %s: 94.5 is rounded as Lighthouse rounds it", fault, want)
	}
	if row := "| overview | desktop | 95 | 100 | 100 | 91 | 125 | 460 |\n"; !strings.HasSuffix(table(all), row) {
		t.Errorf("the table is %s", table(all))
	}
	r.scores["seo"] = 95
	if fault := tooLow(all); fault != nil {
		t.Errorf("enough everywhere, and yet %v", fault)
	}
}

// A page that leads to the sign-in form has good scores that say nothing.
func TestAnotherPageIsNotMeasured(t *testing.T) {
	for name, text := range map[string]string{
		"led to":   string(reportOf("1", "http://x/admin/sign-in")),
		"no score": string(reportOf("null", "http://x/admin")),
		"reading":  "not JSON",
		"broken":   `{"runtimeError":{"message":"broken"}}`,
	} {
		if _, err := read([]byte(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheMiddleRunCounts(t *testing.T) {
	scores := []int{99, 60, 96}
	r, err := middle(len(scores), func() (report, error) {
		score := scores[0]
		scores = scores[1:]
		return report{scores: map[string]int{"performance": score}}, nil
	})
	if err != nil || r.scores["performance"] != 96 {
		t.Errorf("%+v, %v", r, err)
	}
}
