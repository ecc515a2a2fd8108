package jobstest

import (
	"bytes"
	"sync"
)

// Log keeps what is written to it. It may be read while others write: parts of a program
// may log when a test looks already.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String is all that was written.
func (l *Log) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.text.String() }
