package web_test

import (
	"context"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// hostileHouse has markup in every text.
type hostileHouse struct{ *features }

func (hostileHouse) Workers(context.Context) ([]jobs.WorkerRecord, error) {
	return []jobs.WorkerRecord{{Alive: true, SeenAt: noon, WorkerInfo: jobs.WorkerInfo{ID: evil, Host: evil, Version: evil, Queues: []string{evil}, Status: "running",
		StartedAt: noon, Slots: 2, Running: []jobs.RunningJob{{UUID: evil, Type: evil, Queue: evil, Since: noon, Progress: &jobs.Progress{Done: 1, Total: 2, Note: evil}}}}}}, nil
}

func (hostileHouse) Backups(context.Context) ([]web.Backup, error) {
	return []web.Backup{{ID: evil, Destination: evil, Verdict: evil, CreatedAt: noon}, {ID: evil, Status: "complete", Usable: true, Origin: evil, Kept: evil, CreatedAt: noon, VerifiedAt: &noon}}, nil
}

func (hostileHouse) Mails(context.Context, web.MailQuery, jobs.Page) (jobs.List[web.Mail], error) {
	return one(web.Mail{ID: evil, To: evil, Subject: evil, Status: evil, Answer: evil})
}

func (hostileHouse) Mail(context.Context, string) (web.Mail, error) {
	return web.Mail{ID: "1", UUID: evil, To: evil, From: evil, Subject: evil, Status: evil, Answer: evil, HTML: evil, PlainText: evil}, nil
}

func (hostileHouse) Suppressions(context.Context, jobs.Page) (jobs.List[web.Suppression], error) {
	return one(web.Suppression{Address: evil, Reason: evil})
}

func (hostileHouse) Webhooks(context.Context) ([]web.Webhook, error) {
	return []web.Webhook{{ID: evil, URL: "javascript:" + evil, Events: []string{evil}, Note: evil}}, nil
}

func (hostileHouse) Deliveries(context.Context, string, jobs.Page) (jobs.List[web.Delivery], error) {
	return one(web.Delivery{ID: evil, Event: evil, Answer: evil})
}

func (hostileHouse) MediaStatus(context.Context) (web.MediaStatus, error) {
	return web.MediaStatus{Pictures: 3, Missing: 1, Examples: []string{evil}}, nil
}

func (hostileHouse) Report(context.Context, web.AnalyticsQuery) (web.AnalyticsReport, error) {
	return web.AnalyticsReport{Days: []web.AnalyticsDay{{Day: evil, Views: 3}}, Dimensions: map[string][]web.AnalyticsItem{evil: {{Name: evil, Views: 1}}}}, nil
}

func (hostileHouse) SitemapStatus(context.Context) (web.SitemapStatus, error) {
	return web.SitemapStatus{Files: []web.SitemapFile{{Name: evil}}, Submissions: []web.Submission{{Host: evil, Note: evil}}}, nil
}

func (hostileHouse) StorageUsage(context.Context) ([]web.UsageItem, error) {
	return []web.UsageItem{{Name: evil, Class: evil}}, nil
}

func (hostileHouse) Ticks(context.Context, string, jobs.Page) (jobs.List[jobs.TickRecord], error) {
	return one(jobs.TickRecord{Entry: evil, Outcome: evil, Note: evil, Tick: noon})
}

func hostile(c *web.Config) {
	h := hostileHouse{c.Schedules.(*features)}
	h.schedule.Data, h.schedule.Zone, h.schedule.Cron = []byte(`{"x":"`+strings.ReplaceAll(evil, `"`, `\"`)+`"}`), evil, "after "+evil
	h.schedule.Last.Outcome, h.schedule.Last.Note = evil, evil
	c.Workers, c.Backups, c.Mail, c.Suppressions, c.Webhooks, c.Media, c.Analytics, c.Sitemap, c.StorageUsage, c.Schedules = h, h, h, h, h, h, h, h, h, h
	c.Settings = func() []web.Setting { return []web.Setting{{Name: evil, Value: evil, Origin: evil}} }
}
