package template

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/folder"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// cmsName is "cms:TYPE/MODULE/NAME", e.g. cms:plugins/contact/notice.
var cmsName = regexp.MustCompile(`^cms:([a-z]{1,20})/([a-z0-9-]{1,60})/([a-z0-9_-]{1,60})$`)

func isCMSTemplate(name string) bool { return strings.HasPrefix(name, "cms:") }

// cmsTemplate fills in one of the CMS's own templates: the administrator's
// copy under storage/app/email-templates, else the module's. Only simple ones
// can be filled in here; the others are permanent errors that say so.
func (l *Library) cmsTemplate(name string, data map[string]any, settings cms.Settings, look Branding) (Content, error) {
	text, err := l.cmsText(name)
	if err != nil {
		return Content{}, jobs.Permanent(err)
	}
	vars := variables(data, look)
	c := Content{}
	if c.HTML, err = substitute(text, vars, escapeHTML, strict); err != nil {
		return c, jobs.Permanent(fmt.Errorf("the template %s cannot be filled in here: %w", name, err))
	}
	m := cmsName.FindStringSubmatch(name)
	subject := settings.String(m[1]+"_"+m[2]+"_"+m[3]+"_subject", look.Title)
	if c.Subject, err = substitute(subject, vars, plain, lenient); err != nil {
		return c, jobs.Permanent(err)
	}
	c.Subject = strings.Join(strings.Fields(c.Subject), " ")
	c.Text = PlainText(c.HTML)
	return c, nil
}

// cmsText is a template's text without its comments.
func (l *Library) cmsText(name string) (string, error) {
	m := cmsName.FindStringSubmatch(name)
	if m == nil {
		return "", fmt.Errorf("%.80q is not a template of the CMS: write cms:plugins/contact/notice", name)
	}
	kind, module, file := m[1], m[2], m[3]
	text, err := l.cmsFile(
		path.Join("storage/app/email-templates", module, file+".tpl"),
		path.Join("platform", kind, module, "resources/email-templates", file+".tpl"))
	if err != nil {
		return "", fmt.Errorf("reading the template %s: %w", name, err)
	}
	return twigComments.ReplaceAllString(text, ""), nil
}

var twigComments = regexp.MustCompile(`(?s)\{#.*?#\}`)

// cmsFile reads the first of the files that is there, inside the CMS's folder.
func (l *Library) cmsFile(names ...string) (string, error) {
	if l.site.Root == "" {
		return "", errors.New("the CMS's folder is not known (cms.dir)")
	}
	for _, name := range names {
		// "platform" and "storage" may be links to folders elsewhere; inside the last folder nothing leads out.
		dir, file := filepath.Split(filepath.Join(l.site.Root, filepath.FromSlash(name)))
		content, err := folder.Read(dir, file, maxOutput)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		return string(content), err
	}
	return "", fmt.Errorf("%w: none of %s is in the CMS's folder", ErrNoTemplate, strings.Join(names, ", "))
}
