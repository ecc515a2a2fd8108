package health

import (
	"strings"
	"testing"
	"time"
)

// TestTheDigestHasTheFormOfEachNumber reads the week's sums for 0, 1 and 2 of everything.
func TestTheDigestHasTheFormOfEachNumber(t *testing.T) {
	since := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for n, want := range []string{
		"Since 2026-11-16: 0 complete backups, 0 partial, 0 failed; 0 verifications, 0 of them failed. 0 backups are " +
			"kept, 0 MiB in total.",
		"Since 2026-11-16: 1 complete backup, 1 partial, 1 failed; 1 verification, 1 of them failed. 1 backup is " +
			"kept, 1 MiB in total.",
		"Since 2026-11-16: 2 complete backups, 2 partial, 2 failed; 2 verifications, 2 of them failed. 2 backups are " +
			"kept, 2 MiB in total.",
	} {
		w := Watched{Digest: &Digest{Since: since, Complete: n, Partial: n, Failed: n, Verifications: n,
			BadVerifications: n, Stored: n, Bytes: int64(n) << 20}}
		if got, _, _ := strings.Cut(w.Text(), "\n"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
