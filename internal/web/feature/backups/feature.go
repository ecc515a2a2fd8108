package backups

import (
	"embed"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature; a nil port is one that is not configured.
func Feature(port Port) web.Feature {
	h := handlers{port}
	f := web.Feature{Name: "backups", Path: "/admin/backups", Files: files,
		Chapters: map[string]string{"backups": "backup", "backup": "backup#restoring",
			"moment": "backup#any-second"}, Routes: routes(h),
		Overview: h.overview,
		Actions:  actions}
	if port == nil {
		f.Missing = []string{"backups"}
	}
	return f
}

func actions(req *web.Request) []web.Action {
	return []web.Action{
		web.StartAction(req.Text("backups.now"), "backups", "/admin/backups", "backup.generate", ""),
		web.StartAction(req.Text("action.verify"), "shield", "/admin/backups", "backup.verify", "")}
}

func routes(h handlers) []web.Route {
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/backups", Name: "backups.list",
			Summary: "Backup archives, newest first.",
			Scope:   access.Read, Answer: BackupList{}, Needs: "backups",
			Handle: h.listBackups},
		{Method: http.MethodGet, Path: "/api/v1/backups/moments", Name: "backups.moments",
			Summary: "Spans of time within which each second of the database can be restored.",
			Scope:   access.Read, Answer: MomentList{}, Needs: "backups", Handle: h.listMoments},
		{Method: http.MethodGet, Path: "/api/v1/backups/moments/:at", Name: "backups.moment",
			Summary: "What bringing the database to a moment would do, and the word that confirms it.",
			Scope:   access.Admin, Query: []string{"into"}, Answer: MomentPlan{}, Needs: "backups",
			Handle: h.showMomentPlan},
		{Method: http.MethodPost, Path: "/api/v1/backups/moments/:at", Name: "backups.restoreMoment",
			Summary: "Bring the database to a moment, as a job.",
			Scope:   access.Admin, Body: MomentRestore{}, Answer: ops.Enqueued{}, Status: http.StatusCreated,
			Needs: "backups", Handle: h.restoreMoment},
		{Method: http.MethodGet, Path: "/api/v1/backups/:id/download", Name: "backups.download",
			Summary: "Download an archive.",
			Scope:   access.Admin, Stream: true, Type: "application/octet-stream", Needs: "backups",
			Handle: h.downloadBackup},
		{Method: http.MethodDelete, Path: "/api/v1/backups/:id", Name: "backups.delete",
			Summary: "Delete an archive.",
			Scope:   access.Admin, Status: http.StatusNoContent, Needs: "backups",
			Handle: h.deleteBackup},
		{Method: http.MethodGet, Path: "/api/v1/backups/:id/contents", Name: "backups.contents",
			Summary: "Tables and folders of a backup, and the files that fit a pattern.",
			Scope:   access.Admin, Query: []string{"files"}, Answer: Contents{}, Needs: "backups",
			Handle: h.listContents},
		{Method: http.MethodGet, Path: "/api/v1/backups/:id/file", Name: "backups.file",
			Summary: "Download one file of a backup.",
			Scope:   access.Admin, Query: []string{"name"}, Stream: true, Type: "application/octet-stream",
			Needs: "backups", Handle: h.downloadFile},
		{Method: http.MethodGet, Path: "/api/v1/backups/:id/posts/:post", Name: "backups.post",
			Summary: "The word that confirms the restore of one post of a backup.",
			Scope:   access.Admin, Answer: PostPlan{}, Needs: "backups", Handle: h.showPostPlan},
		{Method: http.MethodPost, Path: "/api/v1/backups/:id/posts/:post", Name: "backups.restorePost",
			Summary: "Bring one post of a backup back, as a job.",
			Scope:   access.Admin, Body: PostRestore{}, Answer: ops.Enqueued{}, Status: http.StatusCreated,
			Needs: "backups", Handle: h.restorePost},
		web.PageRoute("/admin/backups/:id/contents", "pages.backup", "Contents of a backup.", access.Admin,
			h.contentsPage).Requires("backups"),
		web.FormRoute("/admin/backups/:id/post", "backups.restorePost", "Restore one post of a backup.", access.Admin,
			h.restorePostByForm).Requires("backups"),
		web.PageRoute("/admin/backups/moment", "pages.moment", "Moments that can be restored.", access.Admin,
			h.momentPage).Requires("backups"),
		web.FormRoute("/admin/backups/moment", "backups.restoreMoment", "Restore the database to a moment.",
			access.Admin, h.restoreMomentByForm).Requires("backups"),
		web.PageRoute("/admin/backups", "pages.backups", "Backups.", access.Read, h.backupsPage),
		web.FormRoute("/admin/backups/:id/delete", "backups.delete", "Delete a backup.", access.Admin,
			h.deleteBackupByForm).Requires("backups"),
		web.FormRoute("/admin/backups/:id/restore", "backups.restore", "Restore a backup.", access.Admin,
			h.restoreByForm).Requires("backups"),
	}
}
