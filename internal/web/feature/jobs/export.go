package jobs

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
)

// csvRows bounds one file; who has more narrows the filter.
const csvRows = 100_000

// exportJobs writes the jobs of a filter as CSV, secrets masked for the caller.
func (h handlers) exportJobs(req *web.Request) error {
	f, err := req.Filter()
	if err != nil {
		return err
	}
	f = f.WithoutSilenced(h.Silenced)
	head := []string{"id", "type", "status", "detail", "queue", "attempts", "max_attempts", "enqueued_at", "run_at",
		"started_at", "ended_at", "duration_ms", "worker", "tags", "error", "payload"}
	view := req.View()
	return writeCSV(req, "jobs", head, func(p jobs.Page) (jobs.List[jobs.Record], error) {
		return req.Ledger().Jobs(req.Ctx(), f, p)
	}, func(r jobs.Record) []string {
		v := view.Job(r)
		tags := ""
		if v.PHP != nil {
			tags = strings.Join(v.PHP.Tags, " ")
		}
		return []string{v.ID, v.Type, v.Status, v.Detail, v.Queue, strconv.Itoa(v.Attempts),
			strconv.Itoa(v.MaxAttempts), moment(v.EnqueuedAt), moment(v.RunAt), moment(v.StartedAt), moment(v.EndedAt),
			strconv.FormatInt(v.DurationMS, 10), v.Worker, tags, format.FirstLine(v.Error), string(v.Payload)}
	})
}

// exportRuns writes runs as CSV.
func (h handlers) exportRuns(req *web.Request) error {
	f, err := runFilter(req)
	if err != nil {
		return err
	}
	head := []string{"job", "type", "queue", "attempt", "outcome", "worker", "started_at", "ended_at", "wait_ms",
		"duration_ms", "error"}
	view := req.View()
	return writeCSV(req, "runs", head, func(p jobs.Page) (jobs.List[jobs.RunRecord], error) {
		return req.History().Runs(req.Ctx(), f, p)
	}, func(r jobs.RunRecord) []string {
		v := view.Run(r)
		return []string{v.Job, v.Type, v.Queue, strconv.Itoa(v.Attempt), v.Outcome, v.Worker, moment(v.StartedAt),
			moment(v.EndedAt), strconv.FormatInt(v.WaitMS, 10), strconv.FormatInt(v.DurationMS, 10),
			format.FirstLine(v.Error)}
	})
}

// writeCSV writes a list as a file, part by part, at most csvRows rows.
func writeCSV[T any](req *web.Request, name string, head []string, ask func(jobs.Page) (jobs.List[T], error),
	row func(T) []string) error {
	page := jobs.Page{Limit: req.PageLimit(), Uncounted: true}
	list, err := ask(page)
	if err != nil {
		return fmt.Errorf("listing %s: %w", name, err)
	}
	req.AuditNow(name+".export", "")
	header := req.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`.csv"`)
	req.Response().WriteHeader(http.StatusOK)
	out := bufio.NewWriter(req.Response())
	file := csv.NewWriter(out)
	file.UseCRLF = true // RFC 4180
	if strings.HasPrefix(req.Path(), "/admin/") {
		_, _ = out.WriteString("\uFEFF") // spreadsheets take the file for UTF-8 by it
	}
	_ = file.Write(head)
	for written := 0; ; {
		for _, item := range list.Items[:min(len(list.Items), csvRows-written)] {
			_ = file.Write(plainCells(row(item)))
		}
		file.Flush()
		if file.Error() != nil || out.Flush() != nil {
			return nil // the reader left
		}
		req.Response().Flush()
		if written += len(list.Items); list.Next == "" || written >= csvRows {
			return nil
		}
		page.Cursor = list.Next
		if list, err = ask(page); err != nil {
			req.Log().Error("export aborted", "event", "web.export_failed", "list", name, "error", err)
			panic(http.ErrAbortHandler) // a part must not be taken for the whole file
		}
	}
}

// plainCells keeps spreadsheets from taking a cell for a formula: jobs hold texts of
// strangers.
func plainCells(cells []string) []string {
	for i, cell := range cells {
		if strings.IndexAny(strings.TrimLeft(cell, " \t\r\n\u00a0"), "=+-@\uFF1D\uFF0B\uFF0D\uFF20|%") == 0 ||
			strings.IndexAny(cell, "\t\r\n") == 0 {
			cells[i] = "'" + cell
		}
	}
	return cells
}

// moment is a time in a file; "" is unknown.
func moment(t time.Time) string {
	if t.IsZero() || t.Unix() == 0 {
		return ""
	}
	return ops.UTC(t).Format(time.RFC3339)
}
