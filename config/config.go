package config

import "time"

// Config is everything that can be configured. Its sections are declared each
// in its own file; config.example.yaml says what every key does.
type Config struct {
	Database   Database           `koanf:"database"`
	CMS        CMS                `koanf:"cms"`
	Queue      Queue              `koanf:"queue"`
	Feed       Feed               `koanf:"feed"`
	Types      map[string]JobType `koanf:"types"`
	PHP        PHP                `koanf:"php"`
	Schedule   Schedule           `koanf:"schedule"`
	HTTP       HTTP               `koanf:"http"`
	Storage    Storage            `koanf:"storage"`
	Sitemap    Sitemap            `koanf:"sitemap"`
	IndexNow   IndexNow           `koanf:"indexnow"`
	Media      Media              `koanf:"media"`
	Mail       Mail               `koanf:"mail"`
	Notify     Notify             `koanf:"notify"`
	Webhook    Webhook            `koanf:"webhook"`
	External   External           `koanf:"external"`
	Backup     Backup             `koanf:"backup"`
	Analytics  Analytics          `koanf:"analytics"`
	Cache      Cache              `koanf:"cache"`
	Purge      Purge              `koanf:"purge"`
	Logs       Logs               `koanf:"logs"`
	Publish    Publish            `koanf:"publish"`
	Activity   Activity           `koanf:"activity"`
	Telemetry  Telemetry          `koanf:"telemetry"`
	Conditions Conditions         `koanf:"conditions"`
	Log        Log                `koanf:"log"`
	Process    Process            `koanf:"process"`
}

// Default is the configuration where nobody says anything.
func Default() Config {
	return Config{
		Database:   defaultDatabase(),
		CMS:        defaultCMS(),
		Queue:      defaultQueue(),
		Feed:       defaultFeed(),
		Types:      map[string]JobType{},
		PHP:        defaultPHP(),
		Schedule:   defaultSchedule(),
		HTTP:       defaultHTTP(),
		Storage:    defaultStorage(),
		Sitemap:    defaultSitemap(),
		IndexNow:   defaultIndexNow(),
		Media:      defaultMedia(),
		Mail:       defaultMail(),
		Notify:     defaultNotify(),
		Webhook:    defaultWebhook(),
		External:   defaultExternal(),
		Backup:     defaultBackup(),
		Analytics:  defaultAnalytics(),
		Cache:      defaultCache(),
		Purge:      defaultPurge(),
		Logs:       defaultLogs(),
		Publish:    defaultPublish(),
		Activity:   defaultActivity(),
		Telemetry:  defaultTelemetry(),
		Conditions: defaultConditions(),
		Log:        Log{Level: "info", Format: "auto", Jobs: "all"},
		Process:    defaultProcess(),
	}
}

// check looks at the values of all sections.
func (c *Config) check(r *report) {
	c.Database.check(r)
	c.CMS.check(r)
	c.Queue.check(r)
	c.Feed.check(r, c.Database.DSN)
	checkKinds(c.Types, r)
	c.PHP.check(r)
	c.Schedule.check(r)
	c.HTTP.check(r)
	c.Storage.check(r)
	c.Sitemap.check(r)
	c.IndexNow.check(r)
	c.Media.check(r)
	c.Mail.check(r)
	c.Notify.check(r)
	c.Webhook.check(r)
	c.External.check(r)
	c.Backup.check(r)
	c.Analytics.check(r)
	c.Cache.check(r)
	c.Purge.check(r)
	c.Logs.check(r)
	c.Publish.check(r)
	c.Activity.check(r)
	c.Telemetry.check(r)
	c.Conditions.check(r)
	r.oneOf("log/level", c.Log.Level, "debug", "info", "warn", "error")
	r.oneOf("log/format", c.Log.Format, "auto", "text", "json")
	r.oneOf("log/jobs", c.Log.Jobs, "all", "failed", "none")
	c.Process.check(r)
}

// Log says how the service writes its own log, on standard error.
type Log struct {
	Level  string `koanf:"level"`
	Format string `koanf:"format"` // auto: text on a terminal, JSON elsewhere
	Jobs   string `koanf:"jobs"`   // all, failed, none
}

const day = 24 * time.Hour
