package jobstest

import (
	"os/exec"
	"syscall"
	"testing"
)

// Chromium is the browser. Debian builds one without windows from the same source, which
// draws the same pages for 0.6 times the processor time.
func Chromium(t testing.TB) (path string) {
	t.Helper()
	path, err := program("chromium-headless-shell", "chromium")
	if err != nil {
		Skip(t, "no browser: apt-get install chromium-headless-shell, or chromium")
	}
	return path
}

// StartChromium starts the browser with arguments. It ends with the test, and so do the
// processes that it started: its command may be a script.
func StartChromium(t testing.TB, arguments ...string) {
	t.Helper()
	c := exec.Command(Chromium(t), arguments...)
	runAs(c, nil, true)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if signalGroup(c.Process.Pid, syscall.SIGKILL) != nil {
			_ = c.Process.Kill()
		}
		_ = c.Wait()
	})
}
