package tables

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// NewToken names a claim: the worker, cut to what locked_by holds, and 128
// random bits.
func NewToken(worker string) string {
	var random [16]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	if len(worker) > 150 {
		worker = strings.ToValidUTF8(worker[:150], "")
	}
	return worker + "/" + hex.EncodeToString(random[:])
}

// DuplicateMark stands between the token and the UUID in a duplicate's lease: its end
// is written under its own UUID.
const DuplicateMark = "\n"

// TokenOf is the token of a lease.
func TokenOf(l jobs.Lease) string {
	token, _, _ := strings.Cut(l.Token, DuplicateMark)
	return token
}

// DuplicateUUID is the UUID in a duplicate's lease.
func DuplicateUUID(l jobs.Lease) string {
	_, uuid, _ := strings.Cut(l.Token, DuplicateMark)
	return uuid
}

// RandomPart is the token without the worker's name: what the history and the
// permits keep.
func RandomPart(token string) string {
	return token[strings.LastIndexByte(token, '/')+1:]
}

// HolderOf is the worker's name in a token.
func HolderOf(token string) string {
	if i := strings.LastIndexByte(token, '/'); i >= 0 {
		return token[:i]
	}
	return token
}

// LeaseMark is what a lease of the given length in seconds is written as.
func (s *Tables) LeaseMark(now int64, length int64) int64 { return now + length - s.RetryAfter }
