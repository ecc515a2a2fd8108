package mail

import (
	"context"
	"io"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
)

// Status is where one recipient of one mail stands.
type Status string

// The states of a row in the ledger. Settled ones are never sent again.
const (
	Sending    Status = "sending"    // handed over, no answer yet
	Accepted   Status = "accepted"   // the server took it; or it was captured
	Deferred   Status = "deferred"   // refused for now, or never reached
	Refused    Status = "refused"    // refused for good
	Unknown    Status = "unknown"    // the connection died before the answer
	Suppressed Status = "suppressed" // on the suppression list
	Expired    Status = "expired"    // too old when its turn came
	Bounced    Status = "bounced"    // accepted, and came back later
)

// outcome is what became of one recipient in one attempt.
type outcome struct {
	to     address.Address
	status Status
	code   int    // of SMTP or of a service's HTTP, 0 when there was none
	answer string // the server's, or the error
	// hard says that the mailbox does not exist: no mail goes there any more.
	hard bool
}

// envelope is who a message goes to, apart from what its header says.
type envelope struct {
	from       string // mailbox; "" is the null sender
	recipients []address.Address
}

// message is a composed mail, written again for each transaction.
type message interface {
	WriteTo(w io.Writer) (int64, error)
}

// driver hands a message to the next station.
type driver interface {
	// deliver hands msg over and says what became of each recipient. It calls
	// handOver with those that will get it before anything of the message may
	// reach them, and gives up when that fails.
	//
	// The error says that the station as a whole failed; outcomes are complete
	// all the same.
	deliver(ctx context.Context, e envelope, msg message, handOver func([]address.Address) error) ([]outcome, error)
}

// all gives every recipient the same outcome.
func all(recipients []address.Address, state Status, code int, answer string) []outcome {
	list := make([]outcome, len(recipients))
	for i, r := range recipients {
		list[i] = outcome{to: r, status: state, code: code, answer: answer}
	}
	return list
}
