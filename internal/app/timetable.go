package app

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
)

// backupDigest is the entry that backup.digest turns off.
const backupDigest = "backup.digest"

// timetable is the default schedule, in the CMS's zone. The
// configuration changes an entry by its name or adds one; the admin page and
// "cmsjobs schedule" pause and change them for all instances.
func timetable() []schedule.Entry {
	return []schedule.Entry{
		{Name: "sitemap.generate", Cron: "0 2 * * *", Job: sitemap.Generate.New(sitemap.GeneratePayload{Force: false})},
		// 30 s after each new sitemap it is enqueued anyway; this is for days without one.
		{Name: "sitemap.indexnow", Cron: "0 2 * * *", Job: sitemap.IndexNow.New(sitemap.IndexNowPayload{}), SkipIfRan: "sitemap.generate"},
		{Name: "backup.generate", Cron: "0 3 * * *", Job: backup.Generate.New(backup.GeneratePayload{}), CatchUp: 3 * time.Hour},
		{Name: "backup.monitor", Cron: "30 9 * * *", Job: backup.Monitor.New(backup.MonitorPayload{})},
		{Name: backupDigest, Cron: "0 9 * * 1", Job: backup.Monitor.New(backup.MonitorPayload{Digest: true})},
		{Name: "logs.cleanup", Cron: "0 4 * * *", Job: cache.LogsCleanup.New(cache.LogsPayload{})},
		{Name: "analytics.process", Cron: "0 * * * *", Job: analytics.Process.New(analytics.ProcessPayload{})},
		{Name: "analytics.weekly", Cron: "0 7 * * 1", Job: analytics.Weekly.New(analytics.WeeklyPayload{}), CatchUp: 12 * time.Hour}, // where analytics.weekly is on
		{Name: "cache.clearExpired", Cron: "*/5 * * * *", Job: cache.ClearExpired.New(cache.ExpiredPayload{}), Policy: schedule.Skip},
		{Name: "queue.clean", Cron: "*/5 * * * *", Job: cache.QueueClean.New(cache.CleanPayload{}), Policy: schedule.Skip},
		// Where a mailbox for bounces is configured.
		{Name: "mail.bounces", Cron: "*/10 * * * *", Job: mail.ReadBounces.New(struct{}{}), Policy: schedule.Skip},
	}
}
