package trace

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// Context names one span of one trace, as the header traceparent does (W3C
// Trace Context, version 00). The zero value names none.
type Context struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool
}

// Parse reads a traceparent; false when it is none. Of later versions the
// known part is read, as the recommendation asks.
func Parse(traceparent string) (Context, bool) {
	var c Context
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || parts[0] == "ff" || len(parts[0]) != 2 || parts[0] == "00" && len(parts) != 4 {
		return c, false
	}
	var version, flags [1]byte
	for _, field := range []struct {
		into []byte
		text string
	}{{version[:], parts[0]}, {c.Trace[:], parts[1]}, {c.Span[:], parts[2]}, {flags[:], parts[3]}} {
		if len(field.text) != 2*len(field.into) || strings.ToLower(field.text) != field.text {
			return Context{}, false
		}
		if _, err := hex.Decode(field.into, []byte(field.text)); err != nil {
			return Context{}, false
		}
	}
	c.Sampled = flags[0]&1 == 1
	return c, c.Trace != [16]byte{} && c.Span != [8]byte{}
}

// String is the traceparent.
func (c Context) String() string {
	flags := 0
	if c.Sampled {
		flags = 1
	}
	return fmt.Sprintf("00-%x-%x-%02x", c.Trace, c.Span, flags)
}

// child is a new span of the same trace.
func (c Context) child() Context {
	rand.Read(c.Span[:]) // never fails (crypto/rand)
	return c
}
