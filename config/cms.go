package config

import (
	"os"
	"path/filepath"
)

// CMS says where the site is that we work for.
type CMS struct {
	Dir  string `koanf:"dir"`
	URL  string `koanf:"url"`
	Zone string `koanf:"zone"`
}

func defaultCMS() CMS { return CMS{} }

func (c CMS) check(r *report) {
	if c.Dir != "" {
		if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
			r.add("cms/dir", "there is no folder %q", c.Dir)
		} else if _, err := filepath.Abs(c.Dir); err != nil {
			r.add("cms/dir", "%v", err)
		}
	}
	r.webURL("cms/url", c.URL)
	r.zone("cms/zone", c.Zone)
}
