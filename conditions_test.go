package cmsjobs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

const (
	alertRules = "deploy/prometheus/alerts.yml"
	beginTable = "<!-- conditions: made by a test -->\n"
	endTable   = "<!-- end of conditions -->\n"
)

// The table of docs/operating.md and the alert rules are the list of package
// conditions; -update writes them again.
func TestConditionsAreDocumented(t *testing.T) {
	page := read(t, "docs/operating.md")
	before, rest, begins := strings.Cut(page, beginTable)
	_, after, ends := strings.Cut(rest, endTable)
	if !begins || !ends {
		t.Fatal("docs/operating.md has no place for the conditions")
	}
	want := before + beginTable + conditions.Table() + endTable + after
	testgolden.Check(t, "docs/operating.md", []byte(want))
	testgolden.Check(t, alertRules, []byte(conditions.AlertRules()))
}

// What docs/operating.md says to do about a condition begins with its title and its
// name: people search there for the words that they were sent.
func TestRemediesBearTheTitlesOfConditions(t *testing.T) {
	titles := map[string]string{}
	for _, d := range conditions.List() {
		titles[d.Name] = d.Title
	}
	found := 0
	for _, remedy := range regexp.MustCompile("(?m)^### (.+) \\(`(\\w+)`\\)$").FindAllStringSubmatch(
		read(t, "docs/operating.md"), -1) {
		found++
		if titles[remedy[2]] != remedy[1] {
			t.Errorf("%q is not the title of %s: %q", remedy[1], remedy[2], titles[remedy[2]])
		}
	}
	if found < 5 {
		t.Errorf("docs/operating.md has remedies for %d conditions", found)
	}
}

// promtool runs Prometheus's own tool on files of a folder.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		jobstest.Skip(t, "apt-get install prometheus: %v", err)
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Each alert fires by its own condition, and by no other; a replica that does
// not see it changes nothing, and two that do make one alert.
func TestAlertRulesFire(t *testing.T) {
	var b strings.Builder
	rules, err := filepath.Abs(alertRules)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 15s\ntests:\n", rules)
	series := func(job, name string, severity conditions.Severity, instance, values string) string {
		return fmt.Sprintf("      - series: 'cmsjobs_condition{job=%q,name=%q,severity=%q,instance=%q}'\n        "+
			"values: '%s'\n", job, name, severity, instance, values)
	}
	for _, d := range conditions.List() {
		fmt.Fprintf(&b, "  - interval: 15s\n    input_series:\n%s%s", series("cmsjobs", d.Name, d.Severity, "a",
			"0x3 1x6 0x6"), series("cmsjobs", d.Name, d.Severity, "b", "0x3 1x3 0x9"))
		fmt.Fprintf(&b, "      - series: 'cmsjobs_build_info{job=\"cmsjobs\"}'\n        values: '1x20'\n      - "+
			"series: 'cmsjobs_workers{job=\"cmsjobs\"}'\n        values: '2x20'\n    alert_rule_test:\n")
		for _, other := range conditions.List() {
			name := conditions.AlertName(other.Name)
			fmt.Fprintf(&b, "      - {eval_time: 30s, alertname: %s}\n      - {eval_time: 4m, alertname: %s}\n", name,
				name)
			if other.Name != d.Name {
				fmt.Fprintf(&b, "      - {eval_time: 1m30s, alertname: %s}\n", name)
				continue
			}
			fmt.Fprintf(&b, "      - eval_time: 1m30s\n        alertname: %s\n        exp_alerts:\n          - "+
				"exp_labels: {job: cmsjobs, name: %s, severity: %s}\n            exp_annotations: {summary: %q, "+
				"description: %q}\n",
				name, d.Name, d.Severity, d.Title, strings.ReplaceAll(d.Fix, "`", "")+".")
		}
	}
	// All processes are killed after a minute; and workers only, while the page goes on.
	b.WriteString(`  - interval: 15s
    input_series:
      - {series: 'cmsjobs_build_info{job="cmsjobs"}', values: '1x4 stale'}
    promql_expr_test: []
    alert_rule_test:
      - {eval_time: 1m, alertname: CmsjobsDown}
      - eval_time: 3m
        alertname: CmsjobsDown
        exp_alerts: [{exp_labels: {severity: failing}, exp_annotations: {summary: "No process of cmsjobs answers", description: "Start the service: systemctl start cmsjobs, or cmsjobs run. If it runs, check http.listen and the token of the scrape."}}]
  - interval: 15s
    input_series:
      - {series: 'cmsjobs_workers{job="cmsjobs",instance="a"}', values: '2x4 0x8'}
      - {series: 'cmsjobs_workers{job="cmsjobs",instance="b"}', values: '2x4 0x8'}
    alert_rule_test:
      - {eval_time: 1m, alertname: CmsjobsNoLiveWorker}
      - eval_time: 1m15s
        alertname: CmsjobsNoLiveWorker
        exp_alerts: [{exp_labels: {job: cmsjobs, severity: failing}, exp_annotations: {summary: "No worker of cmsjobs is alive", description: "Start the service: systemctl start cmsjobs, or cmsjobs run."}}]
`)
	file := filepath.Join(t.TempDir(), "alerts_test.yml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", rules)
	promtool(t, "test", "rules", file)
}
