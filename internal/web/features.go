package web

// feature is something that an installation may lack, by the name that people
// read when it does. A route that needs one says so, and its handler may rely
// on it.
type feature string

const (
	featureBackups    feature = "backups"
	needsMail         feature = "mail log"
	needsSuppressions feature = "suppression list"
	needsWebhooks     feature = "webhooks"
	needsMedia        feature = "media"
	needsAnalytics    feature = "analytics"
	needsSitemap      feature = "sitemap"
	needsUsage        feature = "report of sizes"
	needsSettings     feature = "list of settings"
	needsWorkers      feature = "list of workers"
	needsTicker       feature = "cron route"
	needsTemplates    feature = "mail templates"
	needsSchedules    feature = "schedule"
	needsHistory      feature = "history"
	needsQueues       feature = "control of queues"
)

// enabled says whether a part is there; "" is no part and always there.
func (c Config) enabled(p feature) bool {
	switch p {
	case featureBackups:
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
	case needsUsage:
		return c.StorageUsage != nil
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
