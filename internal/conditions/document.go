package conditions

import (
	"fmt"
	"strings"
)

// Table is the list as Markdown, for the documents.
func Table() string {
	var b strings.Builder
	b.WriteString("| condition | severity | holds when | limit | what to do |\n|---|---|---|---|---|\n")
	for _, d := range List() {
		limit := d.Limit.String()
		switch {
		case limit == "":
			limit = "–"
		case d.Setting != "":
			limit += " (`" + d.Setting + "`)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s. |\n", d.Name, d.Severity,
			strings.ReplaceAll(d.Measured, "LIMIT", "the limit"), limit, d.Fix)
	}
	return b.String()
}

// AlertRules are the list as rules for Prometheus, with two that notice when
// no process is left to say anything.
func AlertRules() string {
	var b strings.Builder
	b.WriteString(
		`# Alert rules for Prometheus, made from the list of conditions (docs/operating.md) by a test. Load them
# with rule_files, and scrape /metrics at least every 30 s: a dead service is then noticed in 2 minutes.
groups:
  - name: cmsjobs
    rules:
      - alert: CmsjobsDown
        expr: absent(cmsjobs_build_info)
        for: 30s
        labels: {severity: failing}
        annotations:
          summary: No process of cmsjobs answers
          description: "Start the service: systemctl start cmsjobs, or cmsjobs run. If it runs, check http.listen and the token of the scrape."
      - alert: CmsjobsNoLiveWorker
        expr: max by (job) (cmsjobs_workers) == 0
        labels: {severity: failing}
        annotations:
          summary: No worker of cmsjobs is alive
          description: "Start the service: systemctl start cmsjobs, or cmsjobs run."
`)
	for _, d := range List() {
		fmt.Fprintf(&b, `      - alert: %s
        expr: max by (job, name) (cmsjobs_condition{name="%s"}) == 1
        labels: {severity: %s}
        annotations:
          summary: %s
          description: %q
`, AlertName(d.Name), d.Name, d.Severity, d.Title, strings.ReplaceAll(d.Fix, "`", "")+".")
	}
	return b.String()
}

// AlertName is the name of a condition's alert: no_worker is CmsjobsNoWorker.
func AlertName(condition string) string {
	name := "Cmsjobs"
	for _, word := range strings.Split(condition, "_") {
		if word == "php" {
			name += "PHP"
			continue
		}
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}
