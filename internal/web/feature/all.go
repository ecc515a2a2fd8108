package feature

import (
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/media"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/webhooks"
)

// Ports are what the features show; a nil one is not configured, and its pages
// say so.
type Ports struct {
	Backups   backups.Port
	Mail      mail.Ports
	Media     media.Port
	Sitemap   sitemap.Port
	Analytics analytics.Port
	Usage     usage.Port
	Webhooks  webhooks.Port
}

// All are the features in the order of the menu.
func All(p Ports) []web.Feature {
	return []web.Feature{
		backups.Feature(p.Backups),
		mail.Feature(p.Mail),
		media.Feature(p.Media),
		sitemap.Feature(p.Sitemap),
		analytics.Feature(p.Analytics),
		usage.Feature(p.Usage),
		webhooks.Feature(p.Webhooks),
	}
}
