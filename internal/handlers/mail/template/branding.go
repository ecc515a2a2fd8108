package template

import (
	"encoding/json"
	"fmt"
	"html"
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

// variables are the names that the CMS gives all its mails.
func (l Branding) variables() map[string]value {
	return map[string]value{
		"site_title":       {plain: l.Title},
		"site_url":         {plain: l.URL},
		"site_logo":        {plain: l.Logo},
		"site_email":       {plain: l.Email},
		"site_admin_email": {plain: l.AdminEmail},
		"site_copyright":   {plain: l.Copyright},
		"date_time":        {plain: l.Now.Format(time.DateTime)},
		"date_year":        {plain: strconv.Itoa(l.Now.Year())},
		"now":              {plain: l.Now.Format(time.DateTime)},
		"header":           {plain: l.header(), trusted: true},
		"footer":           {plain: l.footer(), trusted: true},
		"css":              {}, "html_attributes": {}, "body_attributes": {}, "site_social_links": {},
	}
}

// header and footer stand in for the CMS's own, which are Twig.
func (l Branding) header() string {
	title := html.EscapeString(l.Title)
	if l.Logo != "" {
		title = fmt.Sprintf(`<img src="%s" alt="%s" style="max-height:%dpx">`, html.EscapeString(l.Logo), title, l.LogoHeight)
	}
	return fmt.Sprintf(`<!DOCTYPE html><html><body style="font-family:sans-serif;color:#222"><p><a href="%s">%s</a></p>`, html.EscapeString(l.URL), title)
}

func (l Branding) footer() string {
	return `<hr><p style="color:#666;font-size:12px">` + html.EscapeString(l.Copyright) + `</p></body></html>`
}
