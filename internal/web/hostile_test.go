package web_test

import (
	"context"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/media"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/webhooks"
)

// hostileSite has markup in every text.
type hostileSite struct{ *features }

func (hostileSite) Workers(context.Context) ([]jobs.WorkerRecord, error) {
	return []jobs.WorkerRecord{
		{Alive: true, SeenAt: noon, WorkerInfo: jobs.WorkerInfo{ID: evil, Host: evil, Version: evil, Queues: []string{
			evil}, Status: "running",
			StartedAt: noon, Slots: 2, ConfiguredSlots: 1, MaxSlots: 3, Running: []jobs.RunningJob{
				{UUID: evil, Type: evil, Queue: evil, Since: noon, Progress: &jobs.Progress{
					Done: 1, Total: 2, Note: evil}}}, PHP: []jobs.PHPProcess{{Queue: evil, PID: 1, StartedAt: noon,
				Job: &jobs.RunningJob{UUID: evil, Type: evil, Queue: evil, Since: noon}}}}}}, nil
}

func (hostileSite) Backups(context.Context) ([]backups.Backup, error) {
	return []backups.Backup{{ID: evil, Destination: evil, Verification: evil, CreatedAt: noon},
		{ID: evil, Status: "complete", Usable: true, Origin: evil, Kept: evil, CreatedAt: noon, VerifiedAt: &noon}}, nil
}

func (hostileSite) Mails(context.Context, mail.MailQuery, jobs.Page) (jobs.List[mail.Mail], error) {
	return one(mail.Mail{ID: evil, To: evil, Subject: evil, Status: evil, Answer: evil})
}

func (hostileSite) Mail(context.Context, string) (mail.Mail, error) {
	return mail.Mail{ID: "1", UUID: evil, To: evil, From: evil, Subject: evil, Status: evil, Answer: evil, HTML: evil,
		PlainText: evil}, nil
}

func (hostileSite) Suppressions(context.Context, jobs.Page) (jobs.List[mail.Suppression], error) {
	return one(mail.Suppression{Address: evil, Reason: evil})
}

func (hostileSite) Webhooks(context.Context) ([]webhooks.Webhook, error) {
	return []webhooks.Webhook{{ID: evil, URL: "javascript:" + evil, Events: []string{evil}, Note: evil}}, nil
}

func (hostileSite) Deliveries(context.Context, string, jobs.Page) (jobs.List[webhooks.Delivery], error) {
	return one(webhooks.Delivery{ID: evil, Event: evil, Answer: evil})
}

func (hostileSite) MediaStatus(context.Context) (media.MediaStatus, error) {
	return media.MediaStatus{Pictures: 3, Missing: 1, Examples: []string{evil}}, nil
}

func (hostileSite) Report(context.Context, analytics.AnalyticsQuery) (analytics.AnalyticsReport, error) {
	return analytics.AnalyticsReport{Days: []analytics.AnalyticsDay{{Day: evil, Views: 3}},
		Dimensions: map[string][]analytics.AnalyticsItem{evil: {{Name: evil, Views: 1}}}}, nil
}

func (hostileSite) SitemapStatus(context.Context) (sitemap.SitemapStatus, error) {
	return sitemap.SitemapStatus{Files: []sitemap.SitemapFile{{Name: evil}}, Submissions: []sitemap.Submission{
		{Host: evil, Note: evil}}}, nil
}

func (hostileSite) StorageUsage(context.Context) ([]usage.UsageItem, error) {
	return []usage.UsageItem{{Name: evil, Class: evil}}, nil
}

func (hostileSite) Ticks(context.Context, string, jobs.Page) (jobs.List[jobs.TickRecord], error) {
	return one(jobs.TickRecord{Entry: evil, Outcome: evil, Note: evil, Tick: noon})
}

func hostile(c *config) {
	h := hostileSite{c.Schedules.(*features)}
	h.schedule.Data, h.schedule.Zone, h.schedule.Cron = []byte(`{"x":"`+strings.ReplaceAll(evil, `"`, `\"`)+`"}`),
		evil, "after "+evil
	h.schedule.Last.Outcome, h.schedule.Last.Note = evil, evil
	c.Workers, c.Schedules = h, h
	c.Parts = feature.Ports{Backups: h, Mail: mail.Ports{Log: h, Templates: h, Suppressions: h}, Webhooks: h, Media: h,
		Analytics: h, Sitemap: h, Usage: h}
	c.Settings = func() []web.Setting { return []web.Setting{{Name: evil, Value: evil, Origin: evil}} }
}
