package main

import (
	"os"
	"path/filepath"
	"regexp"
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
		{"cmsjobs:v0.1.0", "cmsjobs:latest", "another image every day"},
		{"replicas: 2", "replicas: 1", "fewer than two"},
	} {
		text := strings.Replace(string(manifests), c.old, c.new, 1)
		if _, err := kubernetes([]byte(text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("with %q: %v", c.new, err)
		}
	}
	composeFaultsAreFound(t)
	dockerfileFaultsAreFound(t)
}

func composeFaultsAreFound(t *testing.T) {
	t.Helper()
	project, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, says string }{
		{"stop_grace_period: 45s", "stop_grace: 45s", "stop_grace"},
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

func dockerfileFaultsAreFound(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if err := dockerfile(text); err != nil {
		t.Errorf("the Dockerfile as it is: %v", err)
	}
	unpinned := regexp.MustCompile(`@sha256:[0-9a-f]{64}`).ReplaceAllString(string(text), "")
	for _, c := range []struct{ old, new, says string }{
		{"AS build", "as build", "FromAsCasing"},
		{"--from=build", "--from=built", "DL3022"},
		{"USER nonroot:nonroot\n", "USER root\n", "DL3002"},
		{"USER nonroot:nonroot\n", "", "DL3002"},
		{":nonroot\n", ":latest\n", "DL3007"},
		{"golang:1.26.5-bookworm", "golang", "DL3006"},
		{"--platform=$BUILDPLATFORM", "--platform=linux/amd64", "DL3029"},
		{"WORKDIR /src", "WORKDIR src", "DL3000"},
		{"COPY . .", "ADD . .", "DL3020"},
		{`CMD ["run"]`, "CMD run", "DL3025"},
		{`CMD ["run"]`, "CMD [\"run\"]\nCMD [\"work\"]", "MultipleInstructionsDisallowed"},
		{"COPY . .", "COPY . .\nRUN cd /src && make | tee log", "DL4006"},
		{"ARG TARGETOS", "RUN apt-get install -y git\nRUN true\nARG TARGETOS", "DL3059"},
		{"HEALTHCHECK", "HEALTHCHECK NONE\n#", "DL3057"},
		{"ARG TARGETOS TARGETARCH", "ARG TARGETOS TARGETARCH SECRET_KEY=x", "SecretsUsedInArgOrEnv"},
	} {
		broken := strings.Replace(unpinned, c.old, c.new, 1)
		if err := dockerfile([]byte(broken)); broken == unpinned || err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("with %q: %v", c.new, err)
		}
	}
}
