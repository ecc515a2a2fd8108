package template

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// Branding is what mails say about the site, from the CMS's settings.
type Branding struct {
	Title, URL, Logo, Email, AdminEmail, Copyright string
	LogoHeight                                     int // pixels
	Links                                          []Link
	Locale                                         string
	Now                                            time.Time // in the site's zone
}

// Link is one of the site's social links.
type Link struct{ Name, URL string }

// Branding is what the CMS's settings say about the site.
func (l *Library) Branding(settings cms.Settings) Branding {
	site := l.site
	now := l.now()
	if zone, err := time.LoadLocation(settings.String("time_zone", "UTC")); err == nil {
		now = now.In(zone)
	}
	b := Branding{
		Title:      settings.String("admin_title", site.Env.String("APP_NAME", "Website")),
		URL:        site.URL(),
		Email:      settings.String("email_template_email_contact", settings.String("email_from_address", "")),
		LogoHeight: settings.Int("email_template_max_height_for_logo", 40),
		Links:      socialLinks(settings["email_template_social_links"]),
		Locale:     settings.String("email_default_locale", settings.String("locale", "")),
		Now:        now,
	}
	if list := settings.List("admin_email"); len(list) > 0 {
		b.AdminEmail = list[0]
	}
	if logo := settings.String("email_template_logo", settings.String("admin_logo", "")); logo != "" {
		b.Logo = b.URL + "/storage/" + strings.TrimLeft(logo, "/")
		if strings.HasPrefix(logo, "https://") || strings.HasPrefix(logo, "http://") {
			b.Logo = logo
		}
	}
	year := strconv.Itoa(now.Year())
	b.Copyright = strings.ReplaceAll(settings.String("email_template_copyright_text", "© %Y "+b.Title), "%Y", year)
	return b
}

// socialLinks reads the CMS's repeater: a list of lists of {key, value}.
func socialLinks(text string) []Link {
	var rows [][]struct{ Key, Value string }
	if json.Unmarshal([]byte(text), &rows) != nil {
		return nil
	}
	var links []Link
	for _, row := range rows {
		var l Link
		for _, field := range row {
			switch field.Key {
			case "name":
				l.Name = field.Value
			case "url":
				l.URL = field.Value
			}
		}
		if strings.HasPrefix(l.URL, "https://") || strings.HasPrefix(l.URL, "http://") {
			links = append(links, l)
		}
	}
	return links
}
