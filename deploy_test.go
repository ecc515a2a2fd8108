package cmsjobs_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// Every YAML file of the project can be read.
func TestYAMLFilesAreReadable(t *testing.T) {
	found := 0
	for _, pattern := range []string{"*.y*ml", ".*.y*ml", ".github/workflows/*.yml", "deploy/kubernetes/*.yaml",
		"config/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			found++
			decoder := yaml.NewDecoder(strings.NewReader(read(t, path)))
			for {
				var object any
				if err := decoder.Decode(&object); err != nil {
					if err.Error() != "EOF" {
						t.Errorf("%s: %v", path, err)
					}
					break
				}
			}
		}
	}
	if found < 7 {
		t.Errorf("only %d YAML files were found", found)
	}
}

// Each server of CI's matrix runs without a container engine, too (make matrix); MySQL 9.7 is
// that of every run.
func TestTheMatrixHasTheServersOfItsScript(t *testing.T) {
	out, err := exec.Command("internal/jobs/jobstest/versions.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := append(strings.Fields(string(out)), "mysql-9.7")
	var got []string
	for _, m := range regexp.MustCompile(`image: "[a-z]+:([0-9.]+)", env: ([A-Z]+)_`).FindAllStringSubmatch(
		read(t, ".github/workflows/check.yml"), -1) {
		name := map[string]string{"MYSQL": "mysql", "MARIADB": "mariadb", "POSTGRES": "postgresql"}[m[2]]
		got = append(got, name+"-"+m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("the matrix has %v, the script %v", got, want)
	}
}

var variable = regexp.MustCompile(`CMSJOBS_[A-Z0-9_]+`)

// The variables that deploy/ sets are keys of the configuration.
func TestDeployedVariablesAreKeys(t *testing.T) {
	out, err := exec.Command(program(t), "config", "show", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var values []map[string]any
	if err := json.Unmarshal(out, &values); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, v := range values {
		if key, is := v["path"].(string); is {
			known["CMSJOBS_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))] = true
		}
	}
	if len(known) < 100 {
		t.Fatalf("config show names only %d keys: %.300s", len(known), out)
	}
	for _, path := range []string{"docker-compose.yml", "deploy/kubernetes/cmsjobs.yaml", "deploy/cmsjobs.service",
		"deploy/cmsjobs.supervisor.conf", "deploy/Dockerfile"} {
		for line := range strings.Lines(read(t, path)) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for _, name := range variable.FindAllString(line, -1) {
				if !known[name] {
					t.Errorf("%s sets %s, which is no key", path, name)
				}
			}
		}
	}
}

// A supervisor waits for longer than the service takes to stop: its grace period
// and a second.
func TestSupervisorsWaitForTheGracePeriod(t *testing.T) {
	usual := regexp.MustCompile(`(?m)^  grace: (\S+)`).FindStringSubmatch(read(t, "config/config.example.yaml"))
	if usual == nil {
		t.Fatal("the example configuration names no grace period")
	}
	for path, c := range map[string]struct{ wait, grace string }{
		"deploy/cmsjobs.service":         {wait: `(?m)^TimeoutStopSec=(\d+)$`},
		"deploy/cmsjobs.supervisor.conf": {wait: `(?m)^stopwaitsecs=(\d+)$`},
		"docker-compose.yml":             {wait: `stop_grace_period: (\d+)s`, grace: `CMSJOBS_QUEUE_GRACE: (\S+)`},
		"deploy/kubernetes/cmsjobs.yaml": {wait: `terminationGracePeriodSeconds: (\d+)`,
			grace: `CMSJOBS_QUEUE_GRACE: (\S+)`},
		"deploy/Dockerfile": {grace: `(?m)^ENV CMSJOBS_QUEUE_GRACE=(\S+)`},
	} {
		text, wait, grace := read(t, path), "10", usual[1] // docker stop waits 10 s
		for pattern, value := range map[string]*string{c.wait: &wait, c.grace: &grace} {
			if pattern == "" {
				continue
			}
			found := regexp.MustCompile(pattern).FindStringSubmatch(text)
			if found == nil {
				t.Errorf("%s has no %s", path, pattern)
				continue
			}
			*value = found[1]
		}
		kill, err := time.ParseDuration(wait + "s")
		length, wrong := time.ParseDuration(grace)
		if err != nil || wrong != nil || kill <= length+time.Second {
			t.Errorf("%s: a process with a grace period of %s is killed after %s s (%v, %v)", path, grace, wait, err,
				wrong)
		}
	}
}
