package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// watched is a transport whose requests the circuit breaker of name goes by.
func (r *Services) watched(base http.RoundTripper, name func(*http.Request) string) http.RoundTripper {
	return &breaker.HTTP{Base: base, Breakers: r.Breakers, Name: name, Logger: r.Log,
		Refused: func(err error) bool { return errors.Is(err, outbound.ErrRefused) }}
}

// SearchEngines is a client for IndexNow. What it reads from the site itself,
// the key, is not watched: that is no search engine.
func (r *Services) SearchEngines(o outbound.Options) *http.Client {
	client := outbound.New(o)
	client.Transport = r.watched(client.Transport, func(q *http.Request) string {
		if q.Method != http.MethodPost {
			return ""
		}
		return "indexnow:" + q.URL.Host
	})
	return client
}

// watchedS3 opens a bucket whose jobs wait while it is out. (Backups have
// separate breakers, one a destination, since they have several.)
func (r *Services) watchedS3(c storage.S3Config) (*storage.S3, error) {
	c.Watch = func(base http.RoundTripper) http.RoundTripper {
		return r.watched(base, func(*http.Request) string { return "s3:" + c.Bucket })
	}
	return storage.NewS3(c)
}

// bucket is the configuration's.
func (r *Services) bucket() (*storage.S3, error) { return r.watchedS3(bucketOf(r.Config.Storage.S3)) }

// OpenS3 opens the bucket of the configuration, unwatched.
func OpenS3(c config.S3) (*storage.S3, error) { return storage.NewS3(bucketOf(c)) }

// openBackups opens it for backups, which may be limited.
func openBackups(c config.S3, place config.BackupPlace) (*storage.S3, error) {
	b := bucketOf(c)
	b.Bandwidth = storage.NewBandwidth(int64(place.Bandwidth))
	return storage.NewS3(b)
}

// OpenSFTP opens the folder of another host that the configuration names. It connects
// when it is used. bandwidth is bytes a second; 0 is no limit.
func OpenSFTP(c config.SFTP, bandwidth int64) (*storage.SFTP, error) {
	return storage.NewSFTP(storage.SFTPOptions{Host: c.Host, Port: c.Port, User: c.User, Password: c.Password.Reveal(),
		KeyFile: c.KeyFile, HostKey: c.HostKey, Dir: c.Dir,
		Bandwidth: storage.NewBandwidth(bandwidth)})
}

// OpenMedia opens the place where the CMS keeps its uploads.
func (r *Services) OpenMedia(_ context.Context, p cms.MediaPlace) (storage.Store, error) {
	if p.Folder == "" {
		return r.watchedS3(r.mediaBucket(p, ""))
	}
	return storage.NewLocal(p.Folder, storage.LocalOptions{})
}

func bucketOf(c config.S3) storage.S3Config {
	return storage.S3Config{Bucket: c.Bucket, Prefix: strings.Trim(c.Prefix, "/"), Region: c.Region,
		Endpoint:  c.Endpoint,
		AccessKey: c.AccessKey, SecretKey: c.SecretKey.Reveal(), PathStyle: c.PathStyle}
}

// mediaBucket is the CMS's bucket, or what is under a prefix in it. An endpoint
// that only the CMS's settings name must be public, or allowed.
func (r *Services) mediaBucket(p cms.MediaPlace, prefix string) storage.S3Config {
	c := storage.S3Config{Bucket: p.Bucket.Name, Prefix: prefix, Region: p.Bucket.Region, Endpoint: p.Bucket.Endpoint,
		AccessKey: p.Bucket.AccessKey, SecretKey: p.Bucket.Secret, PathStyle: p.Bucket.PathStyle}
	if p.Bucket.Foreign {
		dialer := outbound.Dialer{Timeout: 30 * time.Second, AllowPrivate: r.Config.Media.Networks()}
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if errors.Is(err, outbound.ErrRefused) {
				err = fmt.Errorf("the CMS's settings name the bucket's endpoint %s: %w (media.allow_private)", address,
					err)
			}
			return conn, err
		}
	}
	return c
}

// OpenBreakers are the dependencies that are down now.
func (r *Services) OpenBreakers(ctx context.Context) ([]explain.Breaker, error) {
	list, err := r.Breakers.List(ctx)
	var down []explain.Breaker
	for _, b := range list {
		if b.State != breaker.Closed {
			down = append(down, explain.Breaker{Name: b.Dependency, Types: kindsOf(b.Dependency), Until: b.RetryAt,
				Error: b.LastError})
		}
	}
	return down, err
}

// kindsOf are the types whose jobs need a dependency, by what its name begins
// with.
func kindsOf(dependency string) []string {
	sort, _, _ := strings.Cut(dependency, ":")
	switch sort {
	case "smtp", provider.Postmark, provider.Mailgun, provider.Brevo, provider.SES:
		return []string{mail.Send.Name}
	case "imap":
		return []string{mail.ReadBounces.Name}
	case "webhook":
		return []string{webhook.Deliver.Name}
	case "indexnow":
		return []string{sitemap.IndexNow.Name}
	case "s3":
		return []string{media.ProcessImage.Name, sitemap.Generate.Name}
	case "backup":
		return []string{backup.Generate.Name}
	}
	return nil
}
