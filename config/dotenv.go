package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

// plain are variables of the CMS's .env that are taken over as they are.
var plain = []struct{ name, path string }{
	{"DB_PREFIX", "database/prefix"},
	{"DB_QUEUE_CONNECTION_NAME", "database/connection"},
	{"MAIL_HOST", "mail/host"},
	{"MAIL_PORT", "mail/port"},
	{"MAIL_USERNAME", "mail/username"},
	{"MAIL_PASSWORD", "mail/password"},
	{"MAIL_FROM_ADDRESS", "mail/from"},
	{"MAIL_FROM_NAME", "mail/from_name"},
	{"MAIL_EHLO_DOMAIN", "mail/ehlo"},
	{"AWS_ACCESS_KEY_ID", "storage/s3/access_key"},
	{"AWS_SECRET_ACCESS_KEY", "storage/s3/secret_key"},
	{"AWS_DEFAULT_REGION", "storage/s3/region"},
	{"AWS_BUCKET", "storage/s3/bucket"},
	{"AWS_ENDPOINT", "storage/s3/endpoint"},
	{"AWS_USE_PATH_STYLE_ENDPOINT", "storage/s3/path_style"},
}

// fromDotenv reads what the CMS's .env says of things that we need to know too.
func fromDotenv(dir string) ([]setting, error) {
	env, err := cms.ReadEnv(dir)
	if err != nil {
		return nil, err
	}
	var layer []setting
	say := func(path, value, names string) {
		if value != "" {
			layer = append(layer, setting{path, value, filepath.Join(dir, ".env") + " " + names})
		}
	}
	for _, p := range plain {
		say(p.path, env.String(p.name, ""), p.name)
	}
	say("database/dsn", dsnOf(env, dir), "DB_*")
	say("cms/url", siteURL(env), "APP_URL")
	if table := (&cms.Site{Root: dir, Env: env}).QueueTable(); table != defaultDatabase().JobsTable {
		say("database/jobs_table", table, "or config/queue.php: DB_QUEUE_TABLE")
	}
	if name := env.String("DB_QUEUE", ""); name != "" && name != "default" {
		say("queue/queues", "cmsjobs,"+name, "DB_QUEUE")
	}
	if seconds := env.String("DB_QUEUE_RETRY_AFTER", ""); seconds != "" {
		say("queue/php_retry_after", seconds+"s", "DB_QUEUE_RETRY_AFTER")
		layer = append(layer, leaseBelow(seconds+"s", filepath.Join(dir, ".env")+" DB_QUEUE_RETRY_AFTER")...)
	}
	say("mail/driver", mailDriver(env.String("MAIL_MAILER", env.String("MAIL_DRIVER", ""))), "MAIL_MAILER")
	say("mail/encryption", mailEncryption(env), "MAIL_ENCRYPTION")
	return layer, nil
}

// leaseBelow keeps our lease at or under PHP's retry_after, so that a PHP
// worker on the same table never takes a job that we still run.
func leaseBelow(retryAfter, origin string) []setting {
	if d, err := timespan.Parse(retryAfter); err == nil && d > 0 && d < defaultQueue().Lease {
		return []setting{{"queue/lease", retryAfter, origin}}
	}
	return nil
}

func siteURL(env cms.Env) string {
	return (&cms.Site{Env: env}).URL()
}

// dsnOf is the database as Laravel's config/database.php reads it; "" when the
// .env names none.
func dsnOf(env cms.Env, dir string) string {
	if u := env.String("DB_URL", env.String("DATABASE_URL", "")); u != "" {
		return u
	}
	name := env.String("DB_DATABASE", "")
	host, port := env.String("DB_HOST", "127.0.0.1"), env.String("DB_PORT", "")
	user, password := env.String("DB_USERNAME", ""), env.String("DB_PASSWORD", "")
	switch env.String("DB_CONNECTION", "mysql") {
	case "sqlite":
		if name == "" {
			name = filepath.Join("database", "database.sqlite")
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return "sqlite:" + name
	case "pgsql", "postgres":
		if name == "" {
			return ""
		}
		u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Path: "/" + name,
			Host: net.JoinHostPort(host, cmp.Or(port, "5432")), RawQuery: "sslmode=" +
				env.String("DB_SSLMODE", "prefer")}
		return u.String()
	case "mysql", "mariadb":
		if name == "" {
			return ""
		}
		address := "tcp(" + net.JoinHostPort(host, cmp.Or(port, "3306")) + ")"
		if socket := env.String("DB_SOCKET", ""); socket != "" {
			address = "unix(" + socket + ")"
		}
		return fmt.Sprintf("%s:%s@%s/%s", user, password, address, name)
	}
	return ""
}

func mailDriver(mailer string) string {
	switch mailer {
	case "smtp", "sendmail", "log":
		return mailer
	case "array":
		return "log"
	}
	return "" // ses, mailgun and others: the CMS's own; smtp has to be configured
}

func mailEncryption(env cms.Env) string {
	switch strings.ToLower(env.String("MAIL_ENCRYPTION", env.String("MAIL_SCHEME", ""))) {
	case "ssl", "smtps":
		return "tls"
	case "tls":
		return "starttls"
	}
	return ""
}
