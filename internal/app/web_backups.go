package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/browse"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
)

// webBackups shows backups on pages and restores them: the name of one is
// ID@DESTINATION.
type webBackups struct {
	h       *backup.Handler
	enqueue jobs.Enqueuer
}

var (
	_ backups.Restorer      = webBackups{}
	_ backups.BackupWatcher = webBackups{}
	_ backups.Browser       = webBackups{}

	_ backups.MomentRestorer = webBackups{}
)

func (b webBackups) Backups(ctx context.Context) ([]backups.Backup, error) {
	list, away := b.h.List(ctx, "")
	out := make([]backups.Backup, 0, len(list))
	keeps := b.h.Forecast(list)
	for i, s := range list {
		v := b.view(s)
		v.Kept = strings.Join(keeps[i].Reasons, "; ")
		if !keeps[i].Until.IsZero() {
			v.KeptUntil = &keeps[i].Until
		}
		out = append(out, v)
	}
	return out, reached(away)
}

// reached says for pages what an error of a destination means: what is asked
// for is not there, or cannot be asked for.
func reached(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, catalog.ErrNoBackup), errors.Is(err, storage.ErrNotFound):
		return errors.Join(jobs.ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", web.ErrUnavailable, err)
}

func (b webBackups) view(s catalog.Stored) backups.Backup {
	v := backups.Backup{ID: s.ID + "@" + s.Destination, Size: s.Space(), CreatedAt: s.Started, Status: string(s.Status),
		Usable: b.h.Usable(s), Origin: string(s.Origin),
		Database: s.Database, Encrypted: s.Encrypted, Destination: s.Destination, Tables: s.TableCount,
		Files: int(s.FileCount)}
	if p := s.Verification; p != nil {
		v.VerifiedAt, v.Verification = &p.At, string(p.Level)
		if !p.OK {
			v.Verification = "bad: " + p.Problem
		}
	}
	return v
}

func VerificationText(p manifest.Verification) string {
	if !p.OK {
		return "bad: " + strings.Join(p.Problems, "; ")
	}
	return strings.TrimSuffix(string(p.Level)+", "+p.Note, ", ")
}

func (b webBackups) find(ctx context.Context, name string) (catalog.Stored, error) {
	id, destination, _ := strings.Cut(name, "@")
	if destination != "" && !slices.Contains(b.h.Destinations(), destination) {
		return catalog.Stored{}, fmt.Errorf("no destination is named %q: %w", destination, jobs.ErrNotFound)
	}
	s, err := b.h.Show(ctx, id, destination)
	return s, reached(err)
}

func (b webBackups) OpenBackup(ctx context.Context, name string) (io.ReadCloser, backups.Backup, error) {
	s, err := b.find(ctx, name)
	if err != nil {
		return nil, backups.Backup{}, err
	}
	content, info, err := b.h.Whole(ctx, s)
	view := b.view(s)
	view.ID, view.Size = filepath.Base(s.Archive), info.Size
	return content, view, reached(err)
}

func (b webBackups) DeleteBackup(ctx context.Context, name string) error {
	s, err := b.find(ctx, name)
	if err != nil {
		return err
	}
	return reached(b.h.Delete(ctx, s))
}

// planTime is how long a page waits for the comparison of all files.
const planTime = 10 * time.Second

// PlanRestore compares the backup with what is there now, or outlines it where
// that takes too long for a page.
func (b webBackups) PlanRestore(ctx context.Context, name string, part backups.RestorePart) (backups.RestorePlan,
	error) {
	s, err := b.find(ctx, name)
	if err != nil {
		return backups.RestorePlan{}, err
	}
	q := restoreOf(s, part)
	inTime, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	plan, err := b.h.Plan(inTime, q, nil)
	if err != nil && inTime.Err() != nil && ctx.Err() == nil {
		plan, err = b.h.Outline(ctx, q)
	}
	if err != nil {
		return backups.RestorePlan{}, errors.Join(jobs.ErrConflict, err)
	}
	if len(plan.Refused) > 0 {
		return backups.RestorePlan{}, fmt.Errorf("%w: %w: %s", jobs.ErrConflict, restore.ErrUnfit,
			strings.Join(plan.Refused, "; "))
	}
	return backups.RestorePlan{Summary: plan.Summary(), Unread: plan.Unread, Confirm: plan.Token,
		Untrusted: plan.Untrusted, Executable: plan.Executable}, nil
}

// RestoreBackup enqueues a job that restores. confirm is the word of the plan
// without allowances, which the person typed.
func (b webBackups) RestoreBackup(ctx context.Context, name string, part backups.RestorePart, confirm string,
	allow backups.RestoreAllowance) (jobs.Receipt, error) {
	s, err := b.find(ctx, name)
	if err != nil {
		return jobs.Receipt{}, err
	}
	q := restoreOf(s, part)
	token := confirm
	if allow != (backups.RestoreAllowance{}) && confirm == b.h.Token(q) {
		q.TrustUnknown, q.AllowExecutable = allow.Unknown, allow.Executable
		token = b.h.Token(q)
	}
	p := backup.RestorePayload{ID: s.ID, Storage: s.Destination, Database: q.Database, Files: q.Files,
		TrustUnknown: q.TrustUnknown, AllowExecutable: q.AllowExecutable, Confirm: token}
	return b.restore(ctx, p)
}

// BackupContents reads what a backup holds, as long as a page waits.
func (b webBackups) BackupContents(ctx context.Context, name, pattern string) (backups.Contents, error) {
	var v backups.Contents
	s, err := b.find(ctx, name)
	if err != nil {
		return v, err
	}
	var patterns []string
	if pattern != "" {
		patterns = []string{pattern}
		if err := fileset.CheckPatterns(patterns); err != nil {
			return v, web.RefuseField(http.StatusBadRequest, "files", "%v", err)
		}
	}
	inTime, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	c, err := b.h.Contents(inTime, s, patterns, nil)
	if err != nil && inTime.Err() != nil && ctx.Err() == nil {
		return v, fmt.Errorf("%w: %w", backups.ErrSlow, err)
	}
	if err != nil {
		return v, reached(err)
	}
	for _, t := range c.Tables {
		v.Tables = append(v.Tables, backups.Table{Name: t.Name, Rows: int(t.Rows), Without: t.Empty})
	}
	for _, f := range c.Folders {
		v.Folders = append(v.Folders, backups.Folder{Name: f.Name, Files: int(f.Files), Bytes: f.Bytes})
	}
	v.More = int(c.More)
	for i, f := range c.Files {
		if i == pageFiles {
			v.More += len(c.Files) - i
			break
		}
		v.Files = append(v.Files, backups.File{Name: f.Name, Bytes: f.Size, Modified: f.Modified})
	}
	return v, nil
}

// pageFiles is how many files of a backup a page names.
const pageFiles = 500

// BackupFile streams one file of a backup. One that is not there is found missing when
// the archive was read to its end, so the first bytes are awaited.
func (b webBackups) BackupFile(ctx context.Context, name, file string) (io.ReadCloser, error) {
	s, err := b.find(ctx, name)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		_, err := b.h.File(ctx, s, file, w, nil)
		w.CloseWithError(err)
	}()
	buffered := bufio.NewReader(r)
	if _, err := buffered.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		if errors.Is(err, browse.ErrNoFile) {
			err = errors.Join(jobs.ErrNotFound, err)
		}
		return nil, errors.Join(reached(err), r.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{buffered, r}, nil
}

// PlanPost says what a person types to bring a post back.
func (b webBackups) PlanPost(ctx context.Context, name string, post int64) (string, error) {
	s, err := b.find(ctx, name)
	if err != nil {
		return "", err
	}
	return restore.PostRequest{Backup: s, ID: post}.Token(), nil
}

// RestorePost enqueues a job that brings one post back.
func (b webBackups) RestorePost(ctx context.Context, name string, post int64, confirm string) (jobs.Receipt, error) {
	s, err := b.find(ctx, name)
	if err != nil {
		return jobs.Receipt{}, err
	}
	return b.restore(ctx, backup.RestorePayload{ID: s.ID, Storage: s.Destination, Post: post, Confirm: confirm})
}

// restoreOf asks for what of a part the backup holds.
func restoreOf(s catalog.Stored, part backups.RestorePart) restore.Request {
	q := restore.Request{Backup: s}
	switch part {
	case backups.RestoreDatabase:
		q.Database = true
	case backups.RestoreFiles:
		q.Files = true
	default:
		q.Database, q.Files = s.Database, s.Header.Files
	}
	return q
}

// PlanMoment plans what bringing the database to a moment would do, or outlines it where
// the log takes too long to read for a page.
func (b webBackups) PlanMoment(ctx context.Context, at, into string) (v backups.MomentPlan, err error) {
	moment, err := backup.ParseMoment(at, time.UTC)
	if err != nil {
		return v, errors.Join(jobs.ErrInvalid, err)
	}
	inTime, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	q, err := b.h.FindMoment(inTime, moment, "")
	if err == nil && into != "" {
		q.IntoDSN, err = b.h.IntoNamed(into)
	}
	if err != nil {
		return v, errors.Join(jobs.ErrConflict, err)
	}
	plan, err := b.h.PlanMoment(inTime, q)
	if err != nil && inTime.Err() != nil && ctx.Err() == nil {
		plan, err = b.h.OutlineMoment(ctx, q)
	}
	if err != nil {
		return v, errors.Join(jobs.ErrConflict, err)
	}
	if len(plan.Refused) > 0 {
		return v, fmt.Errorf("%w: %w: %s", jobs.ErrConflict, restore.ErrUnfit, strings.Join(plan.Refused, "; "))
	}
	return backups.MomentPlan{At: plan.At, Into: into, Database: plan.Database, Backup: plan.Backup,
		Destination: plan.Destination, Snapshot: plan.Snapshot, Bytes: plan.Bytes, Uncounted: plan.Uncounted,
		Transactions: plan.Transactions, Last: plan.Last, Next: plan.Next, WithoutRows: len(plan.WithoutRows),
		Warnings: slices.Concat(plan.Warnings, plan.Notes), Summary: plan.Summary(), Confirm: plan.Token}, nil
}

// RestoreMoment enqueues a job that brings the database to the moment of a plan.
func (b webBackups) RestoreMoment(ctx context.Context, p backups.MomentPlan, confirm string) (jobs.Receipt, error) {
	return b.restore(ctx, backup.RestorePayload{ID: p.Backup, Storage: p.Destination, At: &p.At, Into: p.Into,
		Confirm: confirm})
}

// restore enqueues a restore.
func (b webBackups) restore(ctx context.Context, p backup.RestorePayload) (jobs.Receipt, error) {
	receipts, err := b.enqueue.Enqueue(ctx, backup.RestoreJob.New(p))
	if err != nil {
		return jobs.Receipt{}, err
	}
	return receipts[0], nil
}

// BackupHealth is what the monitor sees.
func (b webBackups) BackupHealth(ctx context.Context) (backups.BackupHealth, error) {
	h, err := b.h.Health(ctx)
	if err != nil {
		return backups.BackupHealth{}, err
	}
	view := backups.BackupHealth{VerifiedID: h.VerifiedID, Note: h.Note}
	if !h.LastChecked.IsZero() {
		view.Checked = &h.LastChecked
	}
	if !h.LastVerified.IsZero() {
		view.Verified = &h.LastVerified
	}
	for _, w := range h.Warnings {
		view.Warnings = append(view.Warnings, w.Text)
	}
	states, err := b.h.Repositories(ctx)
	for _, s := range states {
		for _, p := range s.Problems {
			view.Repositories = append(view.Repositories, backups.RepositoryFault{Fault: string(p.Fault),
				Destination: s.Destination, Detail: p.Detail})
		}
	}
	return view, err
}
