package client

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // UUIDs of version 5 are made of it
	"encoding/hex"
	"time"
)

type uuid [16]byte

// newUUID is a UUID of version 7: milliseconds of now, then randomness.
func newUUID(now time.Time) string {
	var u uuid
	_, _ = rand.Read(u[:]) // crypto/rand never fails
	ms := now.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	return u.version(7)
}

// named is the UUID of version 5 of a name in the service's namespace.
func named(name string) string {
	namespace := uuid{0x6f, 0x2b, 0x1c, 0x0e, 0x8f, 0x5e, 0x5b, 0x1f, 0x9a, 0x53, 0x0d, 0x6f, 0x3c, 0x1f, 0x7a, 0x10}
	sum := sha1.Sum(append(namespace[:], name...)) //nolint:gosec // see above
	return uuid(sum[:16]).version(5)
}

func (u uuid) version(n byte) string {
	u[6], u[8] = u[6]&0x0f|n<<4, u[8]&0x3f|0x80
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
