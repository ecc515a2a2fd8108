package template

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Library fills in the texts of mails: those of Templates, and the CMS's own.
type Library struct {
	site      *cms.Site
	templates *Set
	now       func() time.Time
}

// NewLibrary joins our templates with those of a CMS.
func NewLibrary(site *cms.Site, templates *Set, now func() time.Time) *Library {
	return &Library{site, templates, now}
}

// ToAdministrators says whether a template is for the administrators where a mail
// names no recipient.
func (l *Library) ToAdministrators(name string) bool { return l.templates.ToAdministrators(name) }

// ErrNoTemplate says that there is no template of that name.
var ErrNoTemplate = jobs.NotFound("there is no such mail template; see cmsjobs mail templates")
