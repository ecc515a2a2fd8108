package php

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// MaxPayload is how large a payload may be to be handed to a process.
const MaxPayload = 64 << 20

// maxFrame bounds what a process sends: an exception of 64 KiB, in which each
// byte may take six in JSON, and little else.
const maxFrame = 1 << 20

// message is what a process says.
type message struct {
	// Hello is the first word of a process: the version of its protocol.
	Hello int `json:"hello"`
	// More asks for a job. It is answered with one, or with an empty order.
	More bool `json:"more"`
	// Took is the time of a job that was sent ahead and is the one in hand now, instead of
	// a request; Late, that of one that was dropped, as its time was over.
	Took int64 `json:"took"`
	Late int64 `json:"late"`
	// Done is the outcome of the job in hand.
	Done *decision `json:"done"`
	// Progress is how far the job in hand is.
	Progress *jobs.Progress `json:"progress"`
	// Bye says that the worker stops, with its exit status; Died, that the process
	// ends without the worker's will, and why. Job is the row in hand, if any.
	Bye  *int   `json:"bye"`
	Died string `json:"died"`
	Job  *int64 `json:"job"`
}

// decision is what Laravel decided on a job.
type decision struct {
	ID        int64  `json:"id"`
	As        string `json:"as"`        // delete, release, fail, nothing
	Delay     int64  `json:"delay"`     // seconds
	Exception string `json:"exception"` // of fail; of release, why
	// Transactions that the job left open; they were rolled back.
	Transactions int `json:"tx"`
}

// order is what a process receives: a job, or, with no ID, that there is none now.
type order struct {
	ID       int64  `json:"id,omitempty"`
	Queue    string `json:"queue,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	Payload  string `json:"payload,omitempty"`
	// Crash is how the last attempt's process died.
	Crash string `json:"crash,omitempty"`
	// GiveUp asks to fail the job instead of running it, and says why.
	GiveUp string `json:"give_up,omitempty"`
	// Until is when a job that was sent ahead may be taken at the latest, in ns of the system's
	// monotonic clock; 0 is that the process has asked for it.
	Until int64 `json:"until,omitempty"`
	// Settled are the rows whose outcome is written.
	Settled []int64 `json:"settled,omitempty"`
}

// frame is the order with its length before it.
func (o *order) frame() ([]byte, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding a job for PHP: %w", err)
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data))), data...), nil
}

// errProtocol says that what came is no message: another program writes to the
// pipe, or the package on the site is of another version.
var errProtocol = errors.New("the PHP process sent what is no message: the package cmsjobs/laravel on the site does " +
	"not fit")

// nextMessage takes the first frame off what was received; m is nil where it is not
// there whole yet.
func nextMessage(received []byte) (m *message, rest []byte, err error) {
	if len(received) < 4 {
		return nil, received, nil
	}
	n := binary.BigEndian.Uint32(received)
	if n > maxFrame {
		return nil, nil, fmt.Errorf("%w (a frame of %d bytes)", errProtocol, n)
	}
	if uint32(len(received)-4) < n {
		return nil, received, nil
	}
	m = new(message)
	if err := json.Unmarshal(received[4:4+n], m); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errProtocol, err)
	}
	return m, received[4+n:], m.check()
}

// check refuses what no process of ours says.
func (m *message) check() error {
	if m.Done == nil {
		return nil
	}
	switch m.Done.As {
	case "delete", "release", "fail", "nothing":
	default:
		return fmt.Errorf("%w (the outcome %q)", errProtocol, m.Done.As)
	}
	if m.Done.Delay < 0 || m.Done.Delay > longestDelay {
		return fmt.Errorf("%w (a delay of %d s)", errProtocol, m.Done.Delay)
	}
	return nil
}

// longestDelay is in seconds: what INT UNSIGNED holds from now on, and a
// time.Duration.
const longestDelay = 1 << 31
