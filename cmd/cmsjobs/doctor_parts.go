package main

import (
	"context"
	"net"
	"os"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/storage"

	"github.com/cmsjobs/cmsjobs/internal/display"
)

// checkCMS says what kind of CMS was found.
func checkCMS(ctx context.Context, r *services) ([]finding, error) {
	p, err := r.site.Probe(ctx)
	if err != nil {
		return nil, err
	}
	if len(p.Content) == 0 {
		return []finding{warn("check database.dsn and database.prefix", "no tables of a CMS are in this database")}, nil
	}
	return []finding{ok("%s", strings.Join(p.Lines(), "; "))}, nil
}

func checkSitemap(_ context.Context, r *services) ([]finding, error) {
	if r.handlers.sitemap == nil {
		return []finding{warn("name the CMS's folder (cms.dir), or set sitemap.dir", "where the sitemap goes is not known")}, nil
	}
	if err := tryWriting(r.sitemapFolder()); err != nil {
		return []finding{fail("run as the web server's user, or give this one the right to write there", "the sitemap cannot be written: %v", err)}, nil
	}
	return []finding{ok("the sitemap goes to %s", r.sitemapFolder())}, nil
}

// checkMail talks to the mail server as far as its greeting; no mail is sent.
func checkMail(ctx context.Context, r *services) ([]finding, error) {
	t, err := r.handlers.mail.Transport(ctx)
	if err != nil {
		return []finding{warn("set mail up in the CMS's settings or in the section mail", "mail cannot leave: %v", err)}, nil
	}
	switch {
	case r.config.Mail.Driver == "files" || t.Driver == mail.DriverFiles:
		return []finding{ok("mails become files; nothing leaves the house")}, nil
	case t.Driver == mail.DriverSendmail:
		if _, err := os.Stat(t.SendmailPath); err != nil {
			return []finding{warn("install it, or set mail.sendmail", "sendmail is not there: %v", err)}, nil
		}
		return []finding{ok("mails go to %s", t.SendmailPath)}, nil
	case t.Driver != mail.DriverSMTP:
		return []finding{ok("mails go to the %s", t.Driver)}, nil
	}
	if err := r.handlers.mail.Greet(ctx, t); err != nil {
		return []finding{warn("check mail.host, mail.port and mail.encryption (the CMS's own settings win), and mail.allow_private", "the mail server %s does not answer: %v", t.Address(), err)}, nil
	}
	return []finding{ok("the mail server %s answers", t.Address())}, nil
}

func checkBreakers(ctx context.Context, r *services) ([]finding, error) {
	list, err := r.breakers.List(ctx)
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, b := range list {
		if b.State != breaker.Closed {
			f := warn("mend it; then cmsjobs breakers reset "+b.Dependency, "%s failed %d times in a row and is left alone: %s", b.Dependency, b.Failures, b.LastError)
			f.condition = conditions.CircuitOpen
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		found = append(found, ok("nothing is out"))
	}
	return found, nil
}

func checkBackups(ctx context.Context, r *services) ([]finding, error) {
	if r.handlers.backup == nil {
		return []finding{warn("name the CMS's folder (cms.dir), or set backup.dir", "no backups are made: where they go is not known")}, nil
	}
	health, err := r.handlers.backup.Health(ctx)
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, w := range health.Warnings {
		f := warn("cmsjobs backup create makes and proves one; cmsjobs backup list", "%s", w.Text)
		f.condition = map[string]string{"leftover": conditions.ScratchLeft, "unproven": conditions.VerificationOld}[w.Code]
		found = append(found, f)
	}
	for _, text := range r.handlers.backup.RestoreRights(ctx) {
		found = append(found, warn("see docs/backup.md, Triggers and functions", "%s", text))
	}
	if b := health.Newest; b != nil {
		found = append(found, ok("the newest complete backup is %s of %s, made %s, %s", b.ID, holds(*b), display.Ago(b.Started, r.now()), r.handlers.backup.Standing(*b)))
	}
	return found, nil
}

func checkAnalytics(_ context.Context, r *services) ([]finding, error) {
	c := r.config.Analytics
	if c.Collect && len(c.Hosts) == 0 && r.site.URL() == "" {
		return []finding{warn("set analytics.hosts, or cms.url", "page views are collected, but for no site: all are refused")}, nil
	}
	if !c.Collect {
		return []finding{ok("page views are not collected (analytics.collect)")}, nil
	}
	return []finding{ok("page views are collected")}, nil
}

// checkDoors looks at who can get into the pages.
func checkDoors(_ context.Context, r *services) ([]finding, error) {
	c := r.config.HTTP
	if !c.Enabled {
		return []finding{ok("no port is opened (http.enabled)")}, nil
	}
	var found []finding
	if c.AdminPassword == "" && len(c.Users) == 0 && !c.CMSAccounts {
		found = append(found, warn("set http.admin_password, http.users or http.cms_accounts", "nobody can sign in to the admin page"))
	}
	if c.WeakPassword() {
		found = append(found, warn("set http.admin_password to 12 characters or more", "the password of %s is short: anybody who reaches the page can guess it", c.AdminUser))
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && c.TLSCert == "" && len(c.Proxies) == 0 {
		if address := net.ParseIP(host); host != "localhost" && (address == nil || !address.IsLoopback()) {
			found = append(found, warn("set http.tls_cert and http.tls_key, or stand behind a proxy and name it in http.proxies", "%s is open to the network without encryption", c.Listen))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("the admin page is at %s", c.Listen))
	}
	return found, nil
}

// checkBucket asks the bucket for one name.
func checkBucket(ctx context.Context, r *services) ([]finding, error) {
	c := r.config.Storage.S3
	if c.Bucket == "" {
		return []finding{ok("no bucket is configured")}, nil
	}
	bucket, err := openS3(c)
	if err != nil {
		return []finding{fail("complete the section storage.s3", "the bucket cannot be used: %v", err)}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := anyObject(ctx, bucket); err != nil {
		return []finding{fail("check storage.s3 (endpoint, region, keys, path_style)", "the bucket %s cannot be listed: %v", c.Bucket, err)}, nil
	}
	return []finding{ok("the bucket %s answers", c.Bucket)}, nil
}

func anyObject(ctx context.Context, s storage.Store) error {
	for _, err := range s.List(ctx, "") {
		return err
	}
	return nil
}
