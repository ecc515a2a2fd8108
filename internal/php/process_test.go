//go:build unix

package php

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// An alarm that was set for an earlier job leaves the one in hand alone until it is due.
func TestAnAlarmOfAnEarlierJobKillsNoOther(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &process{Pool: &Pool{c: Config{Now: time.Now}}, cmd: cmd,
		alarm: stoppedTimer(), job: new(Job), due: time.Now().Add(time.Hour), alarmAt: time.Now()}
	x.overdue()
	if x.why != "" || !x.alarmAt.Equal(x.due) {
		t.Errorf("killed: %q; the alarm comes at %s, the job is due at %s", x.why, x.alarmAt, x.due)
	}
	x.due = time.Now()
	x.overdue()
	if x.why == "" {
		t.Error("a job that is due goes on")
	}
	_ = cmd.Wait() // killed
}

// Its listener may not have come to read what a dead process wrote.
func TestTheFinalMessageIsTakenFromThePipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // open all the time, as by a child of a job
	bye := framed(`{"bye":0,"job":null}`)
	if _, err := w.Write(bye[3:]); err != nil {
		t.Fatal(err)
	}
	x := &process{out: r, received: bye[:3]}
	x.finalMessage()
	if x.last == nil || x.last.Bye == nil {
		t.Error("what is in the pipe is not heard")
	}
}
