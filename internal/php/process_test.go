package php

import (
	"os"
	"testing"
)

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
