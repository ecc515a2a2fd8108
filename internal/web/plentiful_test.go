package web_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/media"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
)

// plenty is a site in use, for pictures and for axe.
type plenty struct{ *features }

func plentiful(c *config) {
	p := plenty{c.Schedules.(*features)}
	c.Schedules, c.Workers = p, p
	c.Parts = feature.Ports{Backups: p, Sitemap: p, Analytics: p, Usage: p, Media: p, Mail: mail.Ports{
		Log: p, Templates: p, Suppressions: p}, Webhooks: p}
}

func (plenty) Workers(context.Context) ([]jobs.WorkerRecord, error) {
	now := time.Now()
	return []jobs.WorkerRecord{
		{Alive: true, SeenAt: now, WorkerInfo: jobs.WorkerInfo{ID: "web1:4711:a1b2c3", Host: "web1", Status: "running",
			StartedAt: now.Add(-26 * time.Hour), Slots: 4, ConfiguredSlots: 4, MaxSlots: jobs.MaxSlots, MemoryBytes: 48 << 20, Done: 15233, Failed: 12,
			Version: "1.0.0", Queues: []string{"cmsjobs", "default"},
			Running: []jobs.RunningJob{{UUID: "0b3e8c1e-0000-4000-8000-000000000001", Type: "media.processImage",
				Queue: "cmsjobs", Attempt: 1, Since: now.Add(-4 * time.Second), Progress: &jobs.Progress{
					Done: 3, Total: 5, Note: "1200 × 800"}}}}},
		{SeenAt: now.Add(-10 * time.Minute), WorkerInfo: jobs.WorkerInfo{ID: "web2:99:ffee00", Host: "web2",
			Status: "running", StartedAt: now.Add(-50 * time.Hour), Slots: 4, Queues: []string{"cmsjobs"}}},
	}, nil
}

func (p plenty) Backups(ctx context.Context) ([]backups.Backup, error) {
	list, err := p.features.Backups(ctx) // the one that can be looked into
	for i := range 14 {
		at := time.Now().Add(-time.Duration(i)*24*time.Hour - 3*time.Hour)
		list = append(list, backups.Backup{ID: "backup-" + at.Format("2006-01-02") + ".tar.zst",
			Size: int64(180-i*4) << 20, CreatedAt: at, Status: map[bool]string{
				true: "complete", false: "failed"}[i != 5], Usable: i != 5, Origin: "own", Encrypted: true,
			Destination: "s3://backups/site", VerifiedAt: &at, Tables: 118, Files: 20412 - i})
	}
	return list, err
}

func (p plenty) Schedules(context.Context) ([]jobs.ScheduleRecord, error) {
	var list []jobs.ScheduleRecord
	for i, e := range [][3]string{{"sitemap", "sitemap.generate", "0 2 * * *"},
		{"backup", "backup.generate", "0 3 * * *"}, {"cache", "cache.clearExpired", "0 * * * *"},
		{"analytics", "analytics.process", "*/15 * * * *"}, {"indexnow", "sitemap.indexnow", "after sitemap"}} {
		r := jobs.ScheduleRecord{Name: e[0], Type: e[1], Cron: e[2], Zone: "Asia/Ho_Chi_Minh", Paused: i == 2,
			Changed: i == 3, Last: &jobs.TickRecord{Tick: time.Now().Add(-time.Hour), Outcome: "completed",
				UUID: "0b3e8c1e-0000-4000-8000-000000000001"}}
		for n := range 5 {
			r.Next = append(r.Next, time.Now().Add(time.Duration(n+1)*5*time.Hour))
		}
		list = append(list, r)
	}
	return list, nil
}

func (plenty) Ticks(_ context.Context, entry string, _ jobs.Page) (jobs.List[jobs.TickRecord], error) {
	var l jobs.List[jobs.TickRecord]
	for i := range 30 {
		l.Items = append(l.Items, jobs.TickRecord{Entry: entry, Tick: time.Now().Add(-time.Duration(i) * time.Hour),
			Outcome: []string{"completed", "completed", "completed", "missed", "completed", "failed"}[i%6]})
	}
	return l, nil
}

func (plenty) SitemapStatus(context.Context) (sitemap.SitemapStatus, error) {
	now := time.Now()
	return sitemap.SitemapStatus{
		Files: []sitemap.SitemapFile{{Name: "sitemap.xml", URLs: 4, Size: 812, Modified: now.Add(-5 * time.Hour)},
			{Name: "sitemap-posts-1.xml", URLs: 45000, Size: 9 << 20, Modified: now.Add(-5 * time.Hour)}},
		Submissions: []sitemap.Submission{
			{At: now.Add(-5 * time.Hour), Host: "api.indexnow.org", URLs: 12, Status: 202},
			{At: now.Add(-29 * time.Hour), Host: "yandex.com", URLs: 12, Status: 429, Note: "too many requests"}}}, nil
}

func (plenty) Report(context.Context, analytics.AnalyticsQuery) (analytics.AnalyticsReport, error) {
	present := int64(3)
	r := analytics.AnalyticsReport{Dimensions: map[string][]analytics.AnalyticsItem{}, Current: &present,
		Total:    analytics.AnalyticsTotal{Views: 15000, Visitors: 6400, Visits: 7900, BounceRate: 40, VisitSeconds: 90},
		Previous: analytics.AnalyticsTotal{Views: 12000, Visitors: 6400, Visits: 8000, BounceRate: 45, VisitSeconds: 60}}
	for i := range 30 {
		r.Days = append(r.Days, analytics.AnalyticsDay{Day: time.Now().AddDate(0, 0, i-30).Format(time.DateOnly),
			Views: int64(400 + (i*137)%300), Visitors: int64(200 + i), Visits: int64(250 + i)})
	}
	for _, d := range []string{"page", "referrer", "device", "browser", "country"} {
		for i := range 6 {
			r.Dimensions[d] = append(r.Dimensions[d], analytics.AnalyticsItem{
				Name: fmt.Sprintf("/%s/some-address-%d", d, i), Views: int64(3000 / (i + 1)),
				Visitors: int64(2000 / (i + 1))})
		}
	}
	r.Dimensions["goal"] = []analytics.AnalyticsItem{
		{Name: "Newsletter", Views: 412, Visitors: 380, Visits: 391, ConversionRate: 5.9}, {Name: "Order"}}
	return r, nil
}

func (plenty) StorageUsage(context.Context) ([]usage.UsageItem, error) {
	return []usage.UsageItem{{Name: "storage/framework/cache", Class: "cache", Bytes: 310 << 20, Rows: 48211},
		{Name: "storage/logs", Class: "logs", Bytes: 92 << 20, Rows: 31},
		{Name: "jobs", Class: "table", Bytes: 12 << 20, Rows: 40123},
		{Name: "cmsjobs_runs", Class: "table", Bytes: 410 << 20, Rows: 1000000}}, nil
}

func (plenty) MediaStatus(context.Context) (media.MediaStatus, error) {
	return media.MediaStatus{Pictures: 4210, Missing: 37, Lost: 2, Examples: []string{
		"news/2026/lotus.jpg", "news/2026/harbour at dawn.png"}}, nil
}

func (plenty) Mails(context.Context, mail.MailQuery, jobs.Page) (jobs.List[mail.Mail], error) {
	var l jobs.List[mail.Mail]
	for i := range 8 {
		l.Items = append(l.Items, mail.Mail{ID: fmt.Sprint(i), To: fmt.Sprintf("person%d@example.org", i),
			Subject: "Your order has been shipped", Status: []string{"accepted", "accepted", "refused",
				"unknown"}[i%4], Kept: i%2 == 0, Answer: "250 2.0.0 Ok: queued as 4XyZ",
			At: time.Now().Add(-time.Duration(i) * time.Minute)})
	}
	return l, nil
}

func (plenty) Mail(context.Context, string) (mail.Mail, error) {
	return mail.Mail{ID: "1", To: "person1@example.org", From: "shop@example.org",
		Subject: "Your order has been shipped", Kept: true, Status: "accepted", Tries: []mail.MailTry{
			{At: time.Now(), Attempt: 1, Status: "accepted", Server: "mail.example.org", Code: 250, Answer: "2.0.0 Ok",
				DurationMS: 41}}, Others: []mail.Mail{{ID: "2", To: "person2@example.org", Status: "refused"}},
		Answer: "250 2.0.0 Ok", At: time.Now(), HTML: "<html lang=en><title>Order</title><main><h1 " +
			"style='color:#17614f'>Shipped</h1><p>Your order is on its way.</p></main>",
		PlainText: "Shipped\n\nYour order is on its way."}, nil
}
