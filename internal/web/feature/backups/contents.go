package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// Browser is a Port that looks into backups, and brings single posts back.
type Browser interface {
	// BackupContents lists tables and folders, and the files that fit a pattern; "" lists
	// none. The error wraps ErrSlow where it takes longer than a page may.
	BackupContents(ctx context.Context, id, pattern string) (Contents, error)
	// BackupFile opens one file. What was read counts only without an error.
	BackupFile(ctx context.Context, id, name string) (io.ReadCloser, error)
	// PlanPost says what a person types to bring a post back.
	PlanPost(ctx context.Context, id string, post int64) (confirm string, err error)
	// RestorePost enqueues it.
	RestorePost(ctx context.Context, id string, post int64, confirm string) (jobs.Receipt, error)
}

// ErrSlow says that a backup cannot be read in the time that a page has.
var ErrSlow = errors.New("reading the backup takes too long for a page: use cmsjobs backup contents")

// Contents is what a backup holds.
type Contents struct {
	Tables  []Table  `json:"tables"`
	Folders []Folder `json:"folders"`
	// Files are those that fit the pattern; More is how many were left out.
	Files []File `json:"files"`
	More  int    `json:"more,omitempty"`
}

// Table is a table of a backup. Without says that its rows were left out.
type Table struct {
	Name    string `json:"name"`
	Rows    int    `json:"rows"`
	Without bool   `json:"without_rows,omitempty"`
}

// Folder is a folder with what is in it and below.
type Folder struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// File is a file of a backup.
type File struct {
	Name     string    `json:"name"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified,omitzero"`
}

// browser is the port if it can look into backups.
func (h handlers) browser() (Browser, error) {
	b, can := h.port.(Browser)
	if !can {
		return nil, web.NotConfigured("looking into backups over the web; use cmsjobs backup contents")
	}
	return b, nil
}

func (h handlers) contents(r *web.Request) (Contents, error) {
	b, err := h.browser()
	if err != nil {
		return Contents{}, err
	}
	id, err := r.NameParam("id")
	if err != nil {
		return Contents{}, err
	}
	c, err := b.BackupContents(r.Ctx(), id, r.QueryParam("files"))
	if err != nil {
		return c, fmt.Errorf("looking into the backup %s: %w", id, err)
	}
	text := r.View().Text
	c.Folders, c.Files = ops.Each(c.Folders, func(f Folder) Folder { return f }), ops.Each(c.Files,
		func(f File) File { return f })
	c.Tables = ops.Each(c.Tables, func(t Table) Table { t.Name = text(t.Name); return t })
	return c, nil
}

func (h handlers) listContents(r *web.Request) error {
	c, err := h.contents(r)
	if errors.Is(err, ErrSlow) {
		return web.Refuse(http.StatusConflict, "This backup takes too long to read.")
	}
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, c)
}

type contentsPageData struct {
	Backup  Backup
	Pattern string
	Slow    bool
	Contents
}

func (h handlers) contentsPage(r *web.Request) error {
	b, err := h.backupNamed(r)
	if err != nil {
		return err
	}
	v := contentsPageData{Backup: b, Pattern: r.QueryParam("files")}
	v.Contents, err = h.contents(r)
	if v.Slow = errors.Is(err, ErrSlow); err != nil && !v.Slow {
		return err
	}
	return r.Show(web.PageView{Name: "backup", Data: v, Ready: true})
}

func (h handlers) downloadFile(r *web.Request) error {
	b, err := h.browser()
	if err != nil {
		return err
	}
	id, err := r.NameParam("id")
	if err != nil {
		return err
	}
	name := r.QueryParam("name")
	content, err := b.BackupFile(r.Ctx(), id, name)
	if err != nil {
		return fmt.Errorf("opening %s of the backup %s: %w", name, id, err)
	}
	defer content.Close()
	r.AuditNow("backups.file", id+": "+name)
	r.Response().Header().Set("Content-Disposition", mime.FormatMediaType("attachment",
		map[string]string{"filename": path.Base(name)}))
	return r.Stream(http.StatusOK, "application/octet-stream", content)
}

// PostPlan says what is typed, or sent, to bring one post of a backup back.
type PostPlan struct {
	Backup  string `json:"backup"`
	Post    int64  `json:"post"`
	Confirm string `json:"confirm"`
}

// PostRestore confirms it.
type PostRestore struct {
	// Confirm is the word of the plan.
	Confirm string `json:"confirm"`
}

// planPost plans the restore of one post.
func (h handlers) planPost(r *web.Request, id, number string) (Browser, PostPlan, error) {
	b, err := h.browser()
	if err != nil {
		return nil, PostPlan{}, err
	}
	post, err := strconv.ParseInt(number, 10, 64)
	if err != nil || post <= 0 {
		return nil, PostPlan{}, web.RefuseField(http.StatusBadRequest, "post", "The number of a post is from 1.")
	}
	confirm, err := b.PlanPost(r.Ctx(), id, post)
	if err != nil {
		return nil, PostPlan{}, fmt.Errorf("planning the restore of a post of %s: %w", id, err)
	}
	return b, PostPlan{Backup: id, Post: post, Confirm: confirm}, nil
}

func (h handlers) showPostPlan(r *web.Request) error {
	id, err := r.NameParam("id")
	if err != nil {
		return err
	}
	_, plan, err := h.planPost(r, id, r.Param("post"))
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, plan)
}

func (h handlers) restorePost(r *web.Request) error {
	id, err := r.NameParam("id")
	if err != nil {
		return err
	}
	var q PostRestore
	if err := r.Decode(&q); err != nil {
		return err
	}
	b, plan, err := h.planPost(r, id, r.Param("post"))
	if err != nil {
		return err
	}
	if q.Confirm != plan.Confirm {
		return web.RefuseField(http.StatusUnprocessableEntity, "confirm",
			"Confirm it with the word that GET on the same address names.")
	}
	receipt, err := enqueuePost(r, b, plan)
	if err != nil {
		return err
	}
	return r.AnswerJob(fmt.Sprintf("%s: post %d", id, plan.Post), restoreKind, receipt)
}

// enqueuePost enqueues a restore that was confirmed, for callers who may.
func enqueuePost(r *web.Request, b Browser, plan PostPlan) (jobs.Receipt, error) {
	if err := r.MayRunType(restoreKind); err != nil {
		return jobs.Receipt{}, err
	}
	receipt, err := b.RestorePost(r.Ctx(), plan.Backup, plan.Post, plan.Confirm)
	if err != nil {
		return receipt, fmt.Errorf("restoring the post %d of %s: %w", plan.Post, plan.Backup, err)
	}
	return receipt, nil
}

func (h handlers) restorePostByForm(r *web.Request) error {
	found, err := h.backupNamed(r)
	if err != nil {
		return err
	}
	b, plan, err := h.planPost(r, found.ID, r.FormValue("post"))
	if err != nil {
		return err
	}
	if yes, err := r.Sure(r.Text("backup.post.ask", strconv.FormatInt(plan.Post, 10), found.ID,
		found.CreatedAt.UTC().Format("2006-01-02 15:04")), plan.Confirm); !yes || err != nil {
		return err
	}
	receipt, err := enqueuePost(r, b, plan)
	if err != nil {
		return err
	}
	r.Audit(found.ID, fmt.Sprintf("post %d as %s", plan.Post, receipt.UUID))
	return r.Follow("/admin/backups", receipt)
}
