package sitemap

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// Config is what the handlers of this package need.
type Config struct {
	Site *cms.Site
	// DB holds our own tables (cmsjobs_sitemap_state, cmsjobs_known_urls).
	DB *sqlx.DB
	// Target is where the map goes; Folder(site.Public()) when nil.
	Target   Target
	Options  Options
	IndexNow IndexNowOptions
	// MediaURL makes the address of a picture from its path below the upload
	// root; root/storage/path when nil.
	MediaURL func(path string) string
	// Updated receives of each new map; what it enqueues with jobs.FollowUp is
	// enqueued in the transaction that completes the job.
	Updated func(ctx context.Context, e Event) error
	// HTTP sends to search engines and fetches the key file; a strict client
	// of package outbound when nil.
	HTTP   *http.Client
	Now    func() time.Time
	Logger *slog.Logger
}

// Event tells of a map that has just been published.
type Event struct {
	URL  string // of sitemap.xml
	URLs int
}

// Handler runs this package's types.
type Handler struct {
	site     *cms.Site
	db       *sqlx.DB
	target   target
	options  Options
	indexnow IndexNowOptions
	media    func(string) string
	updated  func(context.Context, Event) error
	http     *http.Client
	now      func() time.Time
	log      *slog.Logger
}

// New checks c.
func New(c Config) (*Handler, error) {
	if err := errors.Join(c.Options.Validate(), c.IndexNow.Validate()); err != nil {
		return nil, err
	}
	if c.Site == nil || c.DB == nil || c.Now == nil || c.Logger == nil {
		return nil, errors.New("sitemap: Site, DB, Now and Logger are needed")
	}
	if c.Target == nil {
		if c.Site.Public() == "" {
			return nil, errors.New("where to put the sitemap is not known: set the CMS's folder or a target")
		}
		c.Target = Folder(c.Site.Public())
	}
	h := &Handler{site: c.Site, db: c.DB, target: c.Target, options: c.Options, indexnow: c.IndexNow.withDefaults(),
		media: c.MediaURL, updated: c.Updated,
		http: c.HTTP, now: c.Now, log: c.Logger}
	if h.http == nil {
		h.http = outbound.New(outbound.Options{Timeout: 30 * time.Second, AllowHTTP: true, SameHostRedirects: true,
			UserAgent: "cmsjobs"})
	}
	if h.media == nil {
		h.media = h.storageURL
	}
	return h, nil
}

// storageURL is where a CMS that keeps its media beside itself shows them. An
// image may also be a whole address.
func (h *Handler) storageURL(image string) string {
	if strings.HasPrefix(image, "https://") || strings.HasPrefix(image, "http://") {
		return image
	}
	return h.site.URL() + "/storage/" + cms.EscapePath(strings.TrimPrefix(path.Clean("/"+image), "/"))
}
