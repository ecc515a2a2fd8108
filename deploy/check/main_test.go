package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong is found: each change of the real files is refused.
func TestFaultsAreFound(t *testing.T) {
	manifests, err := os.ReadFile("../kubernetes/cmsjobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, says string }{
		{"terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 40", "not above the worker's own grace"},
		{"readinessProbe:", "readynessProbe:", "unknown field"},
		{"targetPort: http", "targetPort: https", "does not have"},
		{"memory: 768Mi", "memory: lots", "quantities must match"},
		{"{name: tmp, mountPath: /tmp}", "{name: temp, mountPath: /tmp}", "is no volume"},
		{"replicas: 2", "replicas: 1", "fewer than two"},
	} {
		text := strings.Replace(string(manifests), c.old, c.new, 1)
		if _, err := kubernetes([]byte(text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("with %q: %v", c.new, err)
		}
	}
	project, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, says string }{
		{"stop_grace_period: 30s", "stop_grace: 30s", "stop_grace"},
		{"mail: {condition: service_started}", "post: {condition: service_started}", "post"},
		{"mail: {condition: service_started}", "mail: {condition: service_healthy}", "no health check"},
	} {
		path := filepath.Join("../..", "docker-compose.broken.yml")
		if err := os.WriteFile(path, []byte(strings.Replace(string(project), c.old, c.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := compose(path)
		os.Remove(path)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("with %q: %v", c.new, err)
		}
	}
}
