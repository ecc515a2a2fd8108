package backup

import (
	"encoding/json"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Register registers the types.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Generate, h.generate)
	jobs.Restrict(r, Generate, jobs.Restriction[GeneratePayload]{
		Refuse: func(_ json.RawMessage, p GeneratePayload) error {
			return h.CheckDestinations(p.request().Destinations...)
		}})
	jobs.Handle(r, Verify, h.verifyJob)
	jobs.Restrict(r, Verify, jobs.Restriction[VerifyPayload]{Refuse: h.refuseVerify})
	jobs.HandleInternal(r, jobs.Internal{Book: h.c.Orders, Maker: jobs.Service}, RestoreJob, h.restoreJob)
	jobs.Handle(r, Monitor, h.monitorJob)
	jobs.Results[catalog.Report](r, Generate)
	jobs.Results[verified](r, Verify)
	jobs.Results[restored](r, RestoreJob)
	jobs.Results[health.Watched](r, Monitor)
}
