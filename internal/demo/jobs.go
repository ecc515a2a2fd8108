package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Job is a job that the demo enqueues: its type, its payload and what it
// shows.
type Job struct {
	jobType string
	payload map[string]any
	shows   string
	uuid    string
}

// Jobs are the demo's jobs in their order. Kinds that this program does
// not have are left out, so that a job is added here by one line. A site without a shop
// has its sitemap and its photos only.
func Jobs(site Site, registry *jobs.Registry, hook string) []Job {
	list := []Job{{jobType: "sitemap.generate", payload: map[string]any{"force": false},
		shows: "writes public/sitemap.xml"}}
	for n := range site.photos {
		list = append(list, Job{jobType: "media.processImage", payload: map[string]any{
			"mediaFileId": n + 1, "filePath": fmt.Sprintf("photos/harbour-%d.jpg", n+1), "mimeType": "image/jpeg"},
			shows: fmt.Sprintf("makes thumbnails of harbour-%d.jpg", n+1)})
	}
	if site.shop {
		list = append(list, ofShop(hook)...)
	}
	known := list[:0]
	for _, j := range list {
		if _, ok := registry.Lookup(j.jobType); ok {
			j.uuid = uuid.NewString()
			known = append(known, j)
		}
	}
	return known
}

// ofShop are the jobs that show everything else once.
func ofShop(hook string) []Job {
	return []Job{
		{jobType: "mail.send", payload: map[string]any{
			"to": "reader@demo.example", "subject": "Welcome to Harbour Notes", "body": "<p>Hello! This mail stays " +
				"in the demo's folder.</p>"}, shows: "writes a mail into mails/"},
		{jobType: "sitemap.indexnow", shows: "tells search engines; here it is off, and says so"},
		{jobType: "analytics.process", shows: "adds up a week of an access log"},
		{jobType: "content.publish", payload: map[string]any{"model": "posts", "postId": 1},
			shows: "publishes a post, renews what shows it"},
		{jobType: "cache.clear", payload: map[string]any{"tags": []string{"menu"}},
			shows: "clears a part of the CMS's cache"},
		{jobType: "cache.clearExpired", shows: "removes what the cache no longer needs"},
		{jobType: "logs.cleanup", payload: map[string]any{"dryRun": true}, shows: "says which old logs would go"},
		{jobType: "webhook.deliver", payload: map[string]any{"url": hook, "event": "demo.hello",
			"data": map[string]any{"hello": "world"}}, shows: "tells another program (a port of this demo)"},
		{jobType: "notification.send", payload: map[string]any{"title": "Hello from the demo",
			"message": "Everything runs."}, shows: "tells the administrators"},
		{jobType: "backup.generate", shows: "backs everything up, verifies it by a restore"},
		{jobType: "cmsjobs.probe", payload: map[string]any{"sleep": "50ms"}, shows: "does nothing, to show a run"}}
}

// InsertAsCMS enqueues as the CMS's own PHP does: a plain INSERT of a flat
// payload into Laravel's jobs table, with nothing of ours in between. Only the
// jobs that no CMS can make name an order, which is written before.
func InsertAsCMS(ctx context.Context, r *app.Services, list []Job) error {
	for _, j := range list {
		data, err := json.Marshal(j.payload)
		if err != nil {
			return err
		}
		given, err := r.Orders.Give(ctx, r.Registry, jobs.Spec{Type: j.jobType, Data: data})
		if err != nil {
			return err
		}
		payload := map[string]any{}
		if err := json.Unmarshal(given[0].Data, &payload); err != nil || payload == nil {
			payload = map[string]any{}
		}
		payload["type"], payload["uuid"] = j.jobType, j.uuid
		data, err = json.Marshal(payload)
		if err != nil {
			return err
		}
		if _, err := r.DB.ExecContext(ctx, `INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at,
			created_at) VALUES ('default', ?, 0, NULL, unixepoch(), unixepoch())`, string(data)); err != nil {
			return fmt.Errorf("enqueuing %s: %w", j.jobType, err)
		}
	}
	return nil
}

// Outcome is what became of a demo job.
type Outcome struct {
	Type       string          `json:"type"`
	UUID       string          `json:"uuid"`
	Shows      string          `json:"shows"`
	Status     string          `json:"status"`
	Attempts   int             `json:"attempts"`
	DurationMS int64           `json:"duration_ms"`
	Error      string          `json:"error,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
}

// Outcomes looks every job up again.
func Outcomes(ctx context.Context, r *app.Services, list []Job) ([]Outcome, error) {
	all := make([]Outcome, len(list))
	for i, j := range list {
		record, err := r.History.Job(ctx, j.uuid)
		switch {
		case errors.Is(err, jobs.ErrNotFound), errors.Is(err, sql.ErrNoRows):
			all[i] = Outcome{Type: j.jobType, UUID: j.uuid, Shows: j.shows, Status: "lost"}
			continue
		case err != nil:
			return nil, err
		}
		all[i] = Outcome{Type: j.jobType, UUID: j.uuid, Shows: j.shows, Status: string(record.Status),
			Attempts:   record.Attempt,
			DurationMS: record.Duration.Milliseconds(), Error: display.Short(record.Error, 300), Result: record.Result}
		if record.Detail == "retrying" { // it failed; the demo does not wait for the next attempt
			all[i].Status = record.Detail
		}
		if record.Status != jobs.StatusCompleted {
			if err := addLastRun(ctx, r, &all[i]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// addLastRun takes attempts, duration and error from the history: neither a
// waiting row nor failed_jobs keeps them.
func addLastRun(ctx context.Context, r *app.Services, o *Outcome) error {
	runs, err := r.History.Runs(ctx, jobs.Filter{UUIDs: []string{o.UUID}}, jobs.Page{Limit: 1})
	if err == nil && len(runs.Items) > 0 {
		run := runs.Items[0]
		o.Attempts, o.DurationMS, o.Error = run.Attempt, run.Duration.Milliseconds(), display.Short(run.Error, 300)
	}
	return err
}

// pending says whether a job of the list still waits or runs.
func pending(all []Outcome) bool {
	for _, o := range all {
		if o.Status == string(jobs.StatusQueued) || o.Status == string(jobs.StatusProcessing) {
			return true
		}
	}
	return false
}

// pollInterval is how often the demo looks whether its jobs are done.
const pollInterval = 100 * time.Millisecond
