package php

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
)

func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func TestMessagesAreBounded(t *testing.T) {
	for _, text := range []string{`{"done":{"id":1,"as":"sell"}}`, `{"done":{"id":1,"as":"release","delay":-1}}`,
		`{"done":{"id":1,"as":"release","delay":99999999999}}`, `[]`, `{"more":1}`} {
		if _, _, err := nextMessage(framed(text)); !errors.Is(err, errProtocol) {
			t.Errorf("%s: %v", text, err)
		}
	}
	long := binary.BigEndian.AppendUint32(nil, maxFrame+1)
	if _, _, err := nextMessage(long); !errors.Is(err, errProtocol) {
		t.Errorf("a frame of %d bytes: %v", maxFrame+1, err)
	}
	for n := range len(framed(`{"hello":2}`)) {
		if m, rest, err := nextMessage(framed(`{"hello":2}`)[:n]); m != nil || len(rest) != n || err != nil {
			t.Errorf("%d bytes of a frame: %+v, %v", n, m, err)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	o := &output{now: time.Now}
	o.add([]byte("one\ntw"))
	o.add([]byte("o\n" + strings.Repeat("x", 5*maxLine) + "\nend\x00."))
	o.line(o.rest)
	var texts []string
	for _, l := range o.lines {
		texts = append(texts, l.Text)
	}
	if len(texts) != 4 || texts[0] != "one" || texts[1] != "two" || len(texts[2]) != maxLine || texts[3] != "end ." {
		t.Errorf("%d lines: %.40q", len(texts), texts)
	}
	for range 3 * maxLines {
		o.add([]byte("x\n"))
	}
	if len(o.lines) != maxLines || o.dropped != 2*maxLines+4 {
		t.Errorf("%d lines are kept, %d dropped", len(o.lines), o.dropped)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(framed(`{"hello":2}`))
	f.Add(append(framed(`{"more":true,"done":{"id":7,"as":"release","delay":3,"exception":"x","tx":1}}`),
		framed(`{"bye":0,"job":null}`)...))
	f.Add(framed(`{"died":"exit() was called","job":9}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for {
			m, rest, err := nextMessage(data)
			if m == nil || err != nil {
				return
			}
			data = rest
			if m.Done != nil {
				if e := m.Done.end(time.Minute); e.Delay < 0 || e.Outcome == 0 {
					t.Errorf("%+v is %+v", m.Done, e)
				}
			}
		}
	})
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("a\nb\x00\xff\n"), 3)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		o := &output{now: time.Now}
		at = min(max(at, 0), len(data))
		o.add(data[:at])
		o.add(data[at:])
		if len(o.lines) > maxLines || len(o.rest) > 4*maxLine {
			t.Errorf("%d lines, a beginning of %d bytes", len(o.lines), len(o.rest))
		}
	})
}
