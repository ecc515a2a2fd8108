package web

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

func same[T any](v T) T { return v }

// answerList is the shape of most lists: ask a room, answer its page.
func answerList[T any](s *Server, c echo.Context, what string, view func(T) T, ask func(jobs.Page) (jobs.List[T], error)) error {
	p, err := s.pageOf(c)
	if err != nil {
		return err
	}
	list, err := ask(p)
	if err != nil {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return c.JSON(http.StatusOK, ops.Listed(list, p, view))
}

func (s *Server) listBackups(c echo.Context) error {
	list, err := s.knownBackups(c.Request().Context())
	if err != nil {
		return fmt.Errorf("listing backups: %w", err)
	}
	v := s.viewer(c)
	list.Items, list.Away = ops.Each(list.Items, v.backup), v.Text(list.Away)
	return c.JSON(http.StatusOK, list)
}

// BackupList is what is known of the backups.
type BackupList struct {
	Items []Backup `json:"items"`
	// Away says which places could not be asked and why; what lies there is
	// not among the items.
	Away string `json:"away,omitempty"`
}

// knownBackups lists what the places that answer hold; that none does is an error.
func (s *Server) knownBackups(ctx context.Context) (BackupList, error) {
	list, err := s.cfg.Backups.Backups(ctx)
	if errors.Is(err, ErrUnavailable) && len(list) > 0 {
		return BackupList{list, err.Error()}, nil
	}
	return BackupList{Items: list}, err
}

func (s *Server) downloadBackup(c echo.Context) error {
	id, err := nameParam(c, "id")
	if err != nil {
		return err
	}
	r, backup, err := s.cfg.Backups.OpenBackup(c.Request().Context(), id)
	if err != nil {
		return fmt.Errorf("opening the backup %s: %w", id, err)
	}
	defer r.Close()
	s.auditEntry(c, "backups.download", id) // a copy of everything leaves the house
	h := c.Response().Header()
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filepath.Base(backup.ID)}))
	if backup.Size > 0 {
		h.Set("Content-Length", strconv.FormatInt(backup.Size, 10))
	}
	return c.Stream(http.StatusOK, "application/octet-stream", r)
}

func (s *Server) deleteBackup(c echo.Context) error {
	id, err := nameParam(c, "id")
	if err != nil {
		return err
	}
	if err := s.cfg.Backups.DeleteBackup(c.Request().Context(), id); err != nil {
		return fmt.Errorf("deleting the backup %s: %w", id, err)
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) listMail(c echo.Context) error {
	q := MailQuery{Status: c.QueryParam("status"), Text: c.QueryParam("q")}
	return answerList(s, c, "mail", s.viewer(c).mail, func(p jobs.Page) (jobs.List[Mail], error) { return s.cfg.Mail.Mails(c.Request().Context(), q, p) })
}

func (s *Server) showMail(c echo.Context) error {
	m, err := s.oneMail(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.viewer(c).mail(m))
}

func (s *Server) resendMail(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	receipt, err := s.sendAgain(c, id)
	if err != nil {
		return err
	}
	return s.answerAgain(c, id, mailKind, receipt)
}

// sendAgain enqueues a mail again, if the caller may enqueue what was kept of it.
func (s *Server) sendAgain(c echo.Context, id string) (jobs.Receipt, error) {
	if err := s.mayRunKind(c, mailKind); err != nil {
		return jobs.Receipt{}, err
	}
	n, err := s.cfg.Mail.MailAgain(c.Request().Context(), id)
	if err == nil {
		if err := s.mayRun(c, n.Type, n.Data); err != nil {
			return jobs.Receipt{}, err
		}
		var receipts []jobs.Receipt
		if receipts, err = s.cfg.Enqueuer.Enqueue(c.Request().Context(), n); err == nil {
			return receipts[0], nil
		}
	}
	return jobs.Receipt{}, fmt.Errorf("sending mail %s again: %w", id, err)
}

func (s *Server) listSuppressions(c echo.Context) error {
	return answerList(s, c, "suppressions", same, func(p jobs.Page) (jobs.List[Suppression], error) {
		return s.cfg.Suppressions.Suppressions(c.Request().Context(), p)
	})
}

func (s *Server) suppress(c echo.Context) error {
	var x Suppression
	if err := body(c, &x); err != nil {
		return err
	}
	setAuditTarget(c, x.Address, x.Reason)
	if len(x.Address) < 3 || len(x.Address) > 254 {
		return fieldError(http.StatusUnprocessableEntity, "address", "address must be a mail address.")
	}
	x.CreatedAt = s.cfg.Now().UTC()
	if err := s.cfg.Suppressions.Suppress(c.Request().Context(), x); err != nil {
		return fmt.Errorf("suppressing an address: %w", err)
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) unsuppress(c echo.Context) error {
	address, err := nameParam(c, "address")
	if err != nil {
		return err
	}
	if err := s.cfg.Suppressions.Unsuppress(c.Request().Context(), address); err != nil {
		return fmt.Errorf("taking an address off the suppression list: %w", err)
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) listWebhooks(c echo.Context) error {
	list, err := s.cfg.Webhooks.Webhooks(c.Request().Context())
	if err != nil {
		return fmt.Errorf("listing webhooks: %w", err)
	}
	return c.JSON(http.StatusOK, WebhookList{Items: ops.Each(list, s.viewer(c).webhook)})
}

func (s *Server) addWebhook(c echo.Context) error { return s.saveWebhook(c, "", http.StatusCreated) }

func (s *Server) changeWebhook(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	return s.saveWebhook(c, id, http.StatusOK)
}

func (s *Server) saveWebhook(c echo.Context, id string, status int) error {
	var w Webhook
	if err := body(c, &w); err != nil {
		return err
	}
	w.ID = id
	if w.URL == "" || len(w.URL) > 2000 {
		return fieldError(http.StatusUnprocessableEntity, "url", "url must be an address of at most 2000 bytes.")
	}
	saved, err := s.cfg.Webhooks.SaveWebhook(c.Request().Context(), w)
	if err != nil {
		return fmt.Errorf("saving a webhook: %w", err)
	}
	setAuditTarget(c, saved.ID, redact.Address(redact.Readers, saved.URL))
	if status != http.StatusCreated {
		saved.Secret = ""
	}
	saved.Events = ops.Each(saved.Events, same)
	return c.JSON(status, saved)
}

func (s *Server) deleteWebhook(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Webhooks.DeleteWebhook(c.Request().Context(), id); err != nil {
		return fmt.Errorf("deleting webhook %s: %w", id, err)
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) listDeliveries(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	return answerList(s, c, "deliveries", s.viewer(c).delivery, func(p jobs.Page) (jobs.List[Delivery], error) {
		return s.cfg.Webhooks.Deliveries(c.Request().Context(), id, p)
	})
}

func (s *Server) redeliver(c echo.Context) error {
	if err := s.mayRunKind(c, deliveryKind); err != nil {
		return err
	}
	id, receipt, err := onID(c, "sending delivery %s again", s.cfg.Webhooks.Redeliver)
	if err != nil {
		return err
	}
	return s.answerAgain(c, id, deliveryKind, receipt)
}

// answerAgain answers with the job that does again what id did.
func (s *Server) answerAgain(c echo.Context, id, jobType string, receipt jobs.Receipt) error {
	answer := s.enqueued(c, jobs.Spec{Type: jobType}, receipt)
	setAuditTarget(c, id, "as "+receipt.UUID)
	return c.JSON(http.StatusCreated, answer)
}

func (s *Server) mediaStatus(c echo.Context) error {
	status, err := s.cfg.Media.MediaStatus(c.Request().Context())
	if err != nil {
		return fmt.Errorf("counting pictures: %w", err)
	}
	return c.JSON(http.StatusOK, status)
}

// RegenerateRequest says for which pictures.
type RegenerateRequest struct {
	OnlyMissing bool `json:"only_missing,omitempty"`
}

func (s *Server) regenerate(c echo.Context) error {
	var r RegenerateRequest
	if err := body(c, &r); err != nil {
		return err
	}
	if err := s.mayRunKind(c, mediaKind); err != nil {
		return err
	}
	n, err := s.cfg.Media.Regenerate(c.Request().Context(), r.OnlyMissing)
	if err != nil {
		return fmt.Errorf("enqueuing thumbnails: %w", err)
	}
	setAuditTarget(c, "", fmt.Sprintf("%d pictures", n))
	return c.JSON(http.StatusOK, Affected{int64(n)})
}

func (s *Server) analytics(c echo.Context) error {
	limit, err := number(c, "limit", 10)
	if err != nil {
		return err
	}
	q := AnalyticsQuery{Since: c.QueryParam("since"), Until: c.QueryParam("until"), Site: clip(c.QueryParam("site"), 191), Limit: min(max(limit, 1), s.cfg.PageLimit)}
	for field, day := range map[string]string{"since": q.Since, "until": q.Until} {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			return fieldError(http.StatusBadRequest, field, "%s must be a day as 2026-11-21, not %q.", field, clip(day, 40))
		}
	}
	report, err := s.cfg.Analytics.Report(c.Request().Context(), q)
	if err != nil {
		return fmt.Errorf("reading analytics: %w", err)
	}
	report.Days = ops.Each(report.Days, same)
	if report.Dimensions == nil {
		report.Dimensions = map[string][]AnalyticsItem{}
	}
	return c.JSON(http.StatusOK, report)
}

func (s *Server) sitemapStatus(c echo.Context) error {
	status, err := s.cfg.Sitemap.SitemapStatus(c.Request().Context())
	if err != nil {
		return fmt.Errorf("looking at the sitemap: %w", err)
	}
	return c.JSON(http.StatusOK, s.viewer(c).sitemap(status))
}

func (s *Server) usage(c echo.Context) error {
	rooms, err := s.cfg.StorageUsage.StorageUsage(c.Request().Context())
	if err != nil {
		return fmt.Errorf("measuring sizes: %w", err)
	}
	return c.JSON(http.StatusOK, UsageList{Items: ops.Each(rooms, same)})
}

func (s *Server) listSettings(c echo.Context) error {
	return c.JSON(http.StatusOK, SettingList{Items: s.settings()})
}
