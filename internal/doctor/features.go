package doctor

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// checkCMS says what kind of CMS was found.
func checkCMS(ctx context.Context, r *app.Services) ([]Finding, error) {
	p, err := r.Site.Probe(ctx)
	if err != nil {
		return nil, err
	}
	if a := r.Site.Application(); a.Other() {
		return []Finding{ok("this is %s: its queue, backups, logs, cache, mail and webhooks are worked on; for a "+
			"sitemap "+
			"name its tables in cms.models", a)}, nil
	}
	if len(p.Content) == 0 {
		return []Finding{warn("check database.dsn and database.prefix", "no tables of a CMS are in this database")}, nil
	}
	return []Finding{ok("%s", strings.Join(p.Lines(), "; "))}, nil
}

// checkEncryption says with which key fields of payloads are encrypted.
func checkEncryption(_ context.Context, r *app.Services) ([]Finding, error) {
	const plain = "fields of payloads that hold secrets are stored as they come: "
	switch from := r.FieldKey(); {
	case !r.Config.Queue.Encrypt:
		return []Finding{ok(plain + "queue.encrypt is off")}, nil
	case from != "":
		return []Finding{ok("fields of payloads that hold secrets are encrypted with %s", from)}, nil
	}
	return []Finding{ok(plain + "there is no APP_KEY and no queue.encryption_key")}, nil
}

func checkSitemap(_ context.Context, r *app.Services) ([]Finding, error) {
	if r.Off[sitemap.Generate.Name] != "" {
		return nil, nil // checkKinds says so
	}
	if r.Handlers.Sitemap == nil {
		return []Finding{warn("name the CMS's folder (cms.dir), or set sitemap.dir", "where the sitemap goes is not "+
			"known")}, nil
	}
	if err := tryWriting(r.SitemapFolder()); err != nil {
		return []Finding{fail("run as the web server's user, or give this one the right to write there",
			"the sitemap cannot be written: %v", err)}, nil
	}
	return []Finding{ok("the sitemap goes to %s", r.SitemapFolder())}, nil
}

// checkMail talks to the mail server as far as its greeting; no mail is sent.
func checkMail(ctx context.Context, r *app.Services) ([]Finding, error) {
	t, err := r.Handlers.Mail.Transport(ctx)
	if err != nil {
		return []Finding{warn("set mail up in the CMS's settings or in the section mail", "mail cannot leave: %v",
			err)}, nil
	}
	switch {
	case r.Config.Mail.Driver == "files" || t.Driver == mail.DriverFiles:
		return []Finding{ok("mails become files; no mail is sent")}, nil
	case t.Driver == mail.DriverSendmail:
		if _, err := os.Stat(t.SendmailPath); err != nil {
			return []Finding{warn("install it, or set mail.sendmail", "sendmail is not there: %v", err)}, nil
		}
		return []Finding{ok("mails go to %s", t.SendmailPath)}, nil
	case slices.Contains(provider.Names(), t.Driver):
		if err := r.Handlers.Mail.Greet(ctx, t); err != nil {
			return []Finding{warn("check mail.endpoint, and whether this host may reach the web",
				"%s does not answer: %v", t.Driver, err)}, nil
		}
		return []Finding{ok("%s answers (%s)", t.Driver, t.Host)}, nil
	case t.Driver != mail.DriverSMTP:
		return []Finding{ok("mails go to the %s", t.Driver)}, nil
	}
	if err := r.Handlers.Mail.Greet(ctx, t); err != nil {
		return []Finding{warn("check mail.host, mail.port and mail.encryption (the CMS's own settings win), and "+
			"mail.allow_private", "the mail server %s does not answer: %v", t.Address(), err)}, nil
	}
	return []Finding{ok("the mail server %s answers", t.Address())}, nil
}

func checkBreakers(ctx context.Context, r *app.Services) ([]Finding, error) {
	list, err := r.Breakers.List(ctx)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, b := range list {
		if b.State != breaker.Closed {
			f := warn("", "%s failed %d times in a row and is left alone: %s", b.Dependency, b.Failures,
				b.LastError).by("fix it; then cmsjobs breakers reset %s", b.Dependency)
			f.condition = conditions.CircuitOpen
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		found = append(found, ok("all services that jobs need respond"))
	}
	return found, nil
}

func checkBackups(ctx context.Context, r *app.Services) ([]Finding, error) {
	if r.Handlers.Backup == nil {
		return []Finding{warn("name the CMS's folder (cms.dir), or set backup.dir", "no backups are made: where they "+
			"go is not known")}, nil
	}
	health, err := r.Handlers.Backup.Health(ctx)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, w := range health.Warnings {
		f := warn("cmsjobs backup create makes and verifies one; cmsjobs backup list", "%s", w.Text)
		f.condition = map[string]string{"leftover": conditions.TempDatabasesLeft,
			"unverified": conditions.VerificationOld}[w.Code]
		found = append(found, f)
	}
	for _, text := range r.Handlers.Backup.RestoreRights(ctx) {
		found = append(found, warn("see docs/backup.md, Triggers and functions", "%s", text))
	}
	found = append(found, protections(ctx, r.Handlers.Backup)...)
	if b := health.Newest; b != nil {
		found = append(found, ok("the newest complete backup is %s of %s, made %s, %s", b.ID, b.Contents(),
			display.Ago(b.Started, r.Now()), r.Handlers.Backup.Standing(*b)))
	}
	return found, nil
}

func checkAnalytics(_ context.Context, r *app.Services) ([]Finding, error) {
	c := r.Config.Analytics
	if err := r.Handlers.Analytics.NoCountries; err != nil {
		return []Finding{warn("put the file there again, or leave analytics.mmdb empty; then restart the service",
			"views are counted without countries, and access logs are not imported: %v", err)}, nil
	}
	if c.Collect && len(c.Hosts) == 0 && r.Site.URL() == "" {
		return []Finding{warn("set analytics.hosts, or cms.url", "page views are collected, but for no site: all are "+
			"refused")}, nil
	}
	if !c.Collect {
		return []Finding{ok("page views are not collected (analytics.collect)")}, nil
	}
	return []Finding{ok("page views are collected")}, nil
}

// checkAdminPage looks at who can get into the pages.
func checkAdminPage(_ context.Context, r *app.Services) ([]Finding, error) {
	c := r.Config.HTTP
	if !c.Enabled {
		return []Finding{ok("no port is opened (http.enabled)")}, nil
	}
	var found []Finding
	if c.AdminPassword == "" && len(c.Users) == 0 && !c.CMSAccounts {
		found = append(found, warn("set http.admin_password, http.users or http.cms_accounts",
			"nobody can sign in to the admin page"))
	}
	if c.WeakPassword() {
		found = append(found, warn("set http.admin_password to 12 characters or more", "the password of %s is short: "+
			"anybody who reaches the page can guess it", c.AdminUser))
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && c.TLSCert == "" && len(c.Proxies) == 0 {
		if address := net.ParseIP(host); host != "localhost" && (address == nil || !address.IsLoopback()) {
			found = append(found, warn("set http.tls_cert and http.tls_key, or stand behind a proxy and name it in "+
				"http.proxies", "%s is open to the network without encryption", c.Listen))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("the admin page is at %s", c.Listen))
	}
	return found, nil
}

// checkBucket asks the bucket for one name.
func checkBucket(ctx context.Context, r *app.Services) ([]Finding, error) {
	c := r.Config.Storage.S3
	if c.Bucket == "" {
		return []Finding{ok("no bucket is configured")}, nil
	}
	bucket, err := app.OpenS3(c)
	if err != nil {
		return []Finding{fail("complete the section storage.s3", "the bucket cannot be used: %v", err)}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := anyObject(ctx, bucket); err != nil {
		return []Finding{fail("check storage.s3 (endpoint, region, keys, path_style)", "the bucket %s cannot be "+
			"listed: %v", c.Bucket, err)}, nil
	}
	return []Finding{ok("the bucket %s answers", c.Bucket)}, nil
}

func anyObject(ctx context.Context, s storage.Store) error {
	for _, err := range s.List(ctx, "") {
		return err
	}
	return nil
}

// checkSignIn says whether the CMS's accounts can sign in.
func checkSignIn(ctx context.Context, r *app.Services) ([]Finding, error) {
	c := r.Config.HTTP
	if !c.Enabled || !c.CMSAccounts {
		return nil, nil
	}
	missing, err := r.Site.Accounts(ctx)
	switch {
	case err != nil:
		return nil, err
	case missing == "":
		return []Finding{ok("the CMS's administrators can sign in to the page")}, nil
	case c.AdminPassword == "" && len(c.Users) == 0:
		return []Finding{warn("set http.admin_password", "nobody can sign in to the page: no account of the CMS can "+
			"(%s), "+
			"and the configuration has none", missing)}, nil
	}
	return []Finding{ok("the page's accounts are those of the configuration; no account of the CMS can sign in: %s",
		missing)}, nil
}
