package backup

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Verify is the type backup.verify: it verifies the latest backup, or one
// that is named, at every destination or at one.
var Verify = jobs.Kind[VerifyPayload]{
	Name:   "backup.verify",
	Policy: jobs.Policy{MaxAttempts: 2, Timeout: 4 * time.Hour, Backoff: jobs.Fixed(time.Hour), Limit: 1},
}

// VerifyPayload is the data of backup.verify.
type VerifyPayload struct {
	// ID is "" for the latest one.
	ID string `json:"id,omitempty" default:"latest" example:"latest"`
	// Storage is "" for every destination that has it.
	Storage string `json:"storage,omitempty" synonyms:"destination"`
	// Level is "" for the configured one.
	Level manifest.Level `json:"level,omitempty" choices:"bytes,parsed,restored" example:"parsed"`
}

// refuseVerify refuses levels and destinations that are not there: a verification of
// an unknown level would verify nothing.
func (h *Handler) refuseVerify(_ json.RawMessage, p VerifyPayload) error {
	switch p.Level {
	case "", manifest.LevelBytes, manifest.LevelParsed, manifest.LevelRestored:
	default:
		return phrase.Errorf("the level is %.40q; it may be bytes, parsed or restored", p.Level)
	}
	if p.Storage == "" {
		return nil
	}
	return h.CheckDestinations(p.Storage)
}

func (h *Handler) verifyJob(ctx context.Context, _ jobs.Job, p VerifyPayload) error {
	if p.ID == "" {
		p.ID = "latest"
	}
	first, err := h.Show(ctx, p.ID, p.Storage)
	if err != nil {
		return err
	}
	all, err := h.List(ctx, p.Storage)
	failed := []error{err} // an unreachable destination is no reason not to verify what the others have
	var verifications []manifest.Verification
	for _, b := range all {
		if b.ID == first.ID {
			verification, err := h.Verify(ctx, b, p.Level, func(s catalog.Step) {
				jobs.Report(ctx, s.Done, s.Total, s.Note)
			})
			verifications = append(verifications, verification)
			failed = append(failed, err)
		}
	}
	return errors.Join(append(failed, jobs.SetResult(ctx, verified(verifications)))...)
}

// verified is the result of backup.verify.
type verified []manifest.Verification

// Summary implements jobs.Summarizer.
func (v verified) Summary() (s phrase.Summary) {
	if len(v) == 0 {
		s.Say("No copy of the backup was read.")
		return s
	}
	s.Say("Read %s {copy|copies} of the backup %s back.", len(v), v[0].Backup)
	for _, one := range v {
		one.SayTo(&s)
	}
	return s
}
