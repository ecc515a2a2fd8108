package web

// part is something that an installation may lack, by the name that people
// read when it does. A route that needs one says so, and its handler may rely
// on it.
type part string

const (
	needsBackups      part = "backups"
	needsMail         part = "mail log"
	needsSuppressions part = "suppression list"
	needsWebhooks     part = "webhooks"
	needsMedia        part = "media"
	needsAnalytics    part = "analytics"
	needsSitemap      part = "sitemap"
	needsGrowth       part = "report of sizes"
	needsSettings     part = "list of settings"
	needsWorkers      part = "list of workers"
	needsTicker       part = "cron route"
	needsTemplates    part = "mail templates"
	needsSchedules    part = "schedule"
	needsHistory      part = "history"
	needsQueues       part = "control of queues"
)

// has says whether a part is there; "" is no part and always there.
func (c Config) has(p part) bool {
	switch p {
	case needsBackups:
		return c.Backups != nil
	case needsMail:
		return c.Mail != nil
	case needsSuppressions:
		return c.Suppressions != nil
	case needsWebhooks:
		return c.Webhooks != nil
	case needsMedia:
		return c.Media != nil
	case needsAnalytics:
		return c.Analytics != nil
	case needsSitemap:
		return c.Sitemap != nil
	case needsGrowth:
		return c.Growth != nil
	case needsSettings:
		return c.Settings != nil
	case needsWorkers:
		return c.Workers != nil
	case needsTicker:
		return c.Ticker != nil
	case needsTemplates:
		return c.Templates != nil
	case needsSchedules:
		return c.Schedules != nil
	case needsHistory:
		return c.History != nil
	case needsQueues:
		return c.Queues != nil
	}
	return true
}
