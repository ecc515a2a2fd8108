package catalog

import (
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
)

// verificationDue is how long after its end a backup may wait for its first verification. A
// backup is verified right after it was made; one that is never verified within
// this time was killed in between.
const verificationDue = 24 * time.Hour

// State is what retention and "latest" look at.
func (c *Catalog) State(b Stored) retention.State {
	_, unreadable := c.config.Destinations[b.Destination].(*botble.Store)
	switch {
	case b.Verification != nil && b.Verification.OK:
		return retention.Verified
	case b.Status == manifest.Failed:
		return retention.Failed
	case unreadable || c.config.Unverified:
		return retention.Pending // it is never due for a verification
	case c.config.Now().Sub(b.Finished) < verificationDue:
		return retention.Pending
	}
	return retention.Overdue
}

// Usable says whether a backup counts: it holds what it was to hold, is
// verified or not yet due for a verification, and this installation made it or trusts
// the one that did.
func (c *Catalog) Usable(b Stored) bool {
	s := c.State(b)
	return b.Status == manifest.Complete && !b.Limited && !b.Safety && !b.Origin.Foreign() &&
		(s == retention.Verified || s == retention.Pending)
}

// Standing says in a few words how far a backup may be relied on.
func (c *Catalog) Standing(b Stored) string {
	switch c.State(b) {
	case retention.Verified:
		return fmt.Sprintf("verified (%s) on %s UTC", b.Verification.Level,
			b.Verification.At.UTC().Format("2006-01-02 15:04"))
	case retention.Failed:
		return b.Reason()
	case retention.Pending:
		return "not verified yet"
	}
	return "never verified, though a verification is due"
}
