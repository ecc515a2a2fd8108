package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Programs in Go ask the kernel for the time without the C library, so that
// libfaketime does not reach them. wrongClock makes an overlay for go build in
// which time.Now adds CLOCK_SKEW seconds to the wall clock; the monotonic
// clock stays right, as on a host whose date is wrong.
func wrongClock(ctx context.Context, dir string) (overlay string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("finding Go: %w", err)
	}
	original := filepath.Join(string(bytes.TrimSpace(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	reading := []byte("\tsec, nsec, mono := runtimeNow()\n")
	if bytes.Count(source, reading) != 1 {
		return "", fmt.Errorf("%s reads the clock otherwise than wrongClock knows", original)
	}
	source = bytes.Replace(source, reading, append(reading, "\tsec += skew\n"...), 1)
	source = bytes.Replace(source, []byte("import (\n"), []byte("import (\n\t\"syscall\"\n"), 1)
	source = append(source, skewSource...)
	changed := filepath.Join(dir, "time.go")
	if err := os.WriteFile(changed, source, 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

const skewSource = `
var skew = func() (seconds int64) {
	text, _ := syscall.Getenv("CLOCK_SKEW")
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	for _, digit := range []byte(text) {
		seconds = seconds*10 + int64(digit-'0')
	}
	if negative {
		return -seconds
	}
	return seconds
}()
`
