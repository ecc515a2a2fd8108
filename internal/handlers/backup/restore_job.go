package backup

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// RestoreJob is the type backup.restore, which the admin page enqueues as an
// separate order. It is tried once: a restore that stopped half way is a
// person's to repeat, who confirms it again.
var RestoreJob = jobs.Kind[RestorePayload]{
	Name:   "backup.restore",
	Policy: jobs.Policy{MaxAttempts: 1, Timeout: 4 * time.Hour, Limit: 1},
}

// RestorePayload is the data of backup.restore.
type RestorePayload struct {
	ID       string   `json:"id" required:"true"`
	Storage  string   `json:"storage,omitempty"` // "" is the first destination that has it
	Database bool     `json:"database,omitempty"`
	Tables   []string `json:"tables,omitempty"`
	Files    bool     `json:"files,omitempty"`
	Paths    []string `json:"paths,omitempty"`
	// Post is the number of the one post to bring back; 0 is none.
	Post int64 `json:"post,omitempty"`
	// At is the moment to which the database is brought; nil is that of the backup.
	At *time.Time `json:"at,omitempty"`
	// Into names a new database for it; "" is the site's.
	Into string `json:"into,omitempty"`
	// TrustUnknown, AllowExecutable and AllowFailed are those of RestoreRequest.
	TrustUnknown    bool `json:"trust_unknown,omitempty"`
	AllowExecutable bool `json:"allow_executable,omitempty"`
	AllowFailed     bool `json:"allow_failed,omitempty"`
	// Confirm is the token of the plan, typed by a person.
	Confirm string `json:"confirm" required:"true"`
}

// Validate implements jobs.Validator.
func (p *RestorePayload) Validate() error {
	switch {
	case p.ID == "" || p.ID == "latest":
		return phrase.Errorf("a restore names its backup: what is the newest may change meanwhile")
	case p.Post < 0 || p.Post > 0 && (p.parts() || p.At != nil):
		return phrase.Errorf("a restore of one post restores nothing else")
	case p.At != nil && p.parts():
		return phrase.Errorf("a restore to a moment restores the whole database, and nothing else")
	case p.At == nil && p.Into != "":
		return phrase.Errorf("only a restore to a moment makes a new database")
	case strings.TrimSpace(p.Confirm) == "":
		return phrase.Errorf("a restore needs the word that confirms it: cmsjobs backup restore ID --dry-run says it")
	}
	return nil
}

// parts says whether parts of a backup are named.
func (p *RestorePayload) parts() bool {
	return p.Database || p.Files || len(p.Tables)+len(p.Paths) > 0
}

// restoreJob runs a backup.restore job.
func (h *Handler) restoreJob(ctx context.Context, _ jobs.Job, p RestorePayload) error {
	if p.At != nil {
		return h.restoreMoment(ctx, p)
	}
	b, err := h.Show(ctx, p.ID, p.Storage)
	if err != nil {
		return err
	}
	if p.Post > 0 {
		return h.restorePost(ctx, b, p)
	}
	if p.Database && b.Engine != database.MySQL {
		return jobs.Permanent(errors.New("such a database is restored by hand, while nobody works with it: stop the " +
			"service, then cmsjobs backup restore " + p.ID + " --database"))
	}
	q := restore.Request{Backup: b, Database: p.Database || len(p.Tables) > 0, Tables: p.Tables, Files: p.Files ||
		len(p.Paths) > 0, Paths: p.Paths,
		TrustUnknown: p.TrustUnknown, AllowExecutable: p.AllowExecutable, AllowFailed: p.AllowFailed,
		Confirm: p.Confirm, Begin: jobs.UseOrder}
	done, err := h.Restore(ctx, q, func(s catalog.Step) { jobs.Report(ctx, s.Done, s.Total, s.Note) })
	for _, problem := range done.Problems {
		jobs.Logf(ctx, "%s", problem)
	}
	if done.Executable > 0 {
		jobs.Logf(ctx, "%d files that a web server could execute were left out", done.Executable)
	}
	if done.Safety != nil {
		jobs.Logf(ctx, "what was there before is in the backup %s", done.Safety.ID)
	}
	return laterIfBusy(errors.Join(err, jobs.SetResult(ctx, done)))
}

// restorePost brings one post back.
func (h *Handler) restorePost(ctx context.Context, b catalog.Stored, p RestorePayload) error {
	post, err := h.Post(ctx, restore.PostRequest{Backup: b, ID: p.Post, Confirm: p.Confirm, Begin: jobs.UseOrder,
		TrustUnknown: p.TrustUnknown, AllowFailed: p.AllowFailed},
		func(s catalog.Step) { jobs.Report(ctx, s.Done, s.Total, s.Note) })
	for _, problem := range post.Problems {
		jobs.Logf(ctx, "%s", problem)
	}
	return laterIfBusy(errors.Join(err, jobs.SetResult(ctx, post)))
}

// restoreMoment brings the site, or a new database, to a moment.
func (h *Handler) restoreMoment(ctx context.Context, p RestorePayload) error {
	q, err := h.findMoment(ctx, *p.At, p.Storage, p.ID)
	if err != nil {
		return err
	}
	if p.Into != "" {
		if q.IntoDSN, err = h.IntoNamed(p.Into); err != nil {
			return err
		}
	}
	q.Confirm, q.Begin = p.Confirm, jobs.UseOrder
	done, err := h.Moment(ctx, q, func(s catalog.Step) { jobs.Report(ctx, s.Done, s.Total, s.Note) })
	for _, problem := range done.Problems {
		jobs.Logf(ctx, "%s", problem)
	}
	if done.Safety != nil {
		jobs.Logf(ctx, "what was there before is in the backup %s", done.Safety.ID)
	}
	if err != nil {
		return laterIfBusy(err)
	}
	return jobs.SetResult(ctx, done)
}

// laterIfBusy retries later what another backup or restore refused.
func laterIfBusy(err error) error {
	if errors.Is(err, lock.ErrBusy) {
		return jobs.RetryAfter(err, busyDelay)
	}
	return err
}

// restored is the result of backup.restore: of a post, of a moment, or of anything else.
type restored struct{ what jobs.Summarizer }

// UnmarshalJSON implements json.Unmarshaler. Only the result of a post says whether it
// was restored, and only that of a moment says when that was.
func (r *restored) UnmarshalJSON(data []byte) error {
	var kind struct {
		Restored *bool      `json:"restored"`
		At       *time.Time `json:"at"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return err
	}
	switch {
	case kind.Restored != nil:
		var post restore.Post
		err := json.Unmarshal(data, &post)
		r.what = post
		return err
	case kind.At != nil:
		var moment restore.MomentResult
		err := json.Unmarshal(data, &moment)
		r.what = moment
		return err
	}
	var whole restore.Result
	err := json.Unmarshal(data, &whole)
	r.what = whole
	return err
}

// Summary implements jobs.Summarizer.
func (r restored) Summary() phrase.Summary {
	if r.what == nil {
		return restore.Result{}.Summary()
	}
	return r.what.Summary()
}
