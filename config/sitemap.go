package config

import "time"

// Sitemap says what stands in the site's maps and where they are written.
type Sitemap struct {
	Target      string   `koanf:"target"` // public, s3, cache
	Dir         string   `koanf:"dir"`    // "" is the CMS's public folder
	PageSize    int      `koanf:"page_size"`
	Images      bool     `koanf:"images"`
	Alternates  bool     `koanf:"alternates"`
	Gzip        bool     `koanf:"gzip"`
	Stylesheet  bool     `koanf:"stylesheet"`
	Robots      bool     `koanf:"robots"`
	SkipNoindex bool     `koanf:"skip_noindex"`
	Exclude     []string `koanf:"exclude"`
	Ping        bool     `koanf:"ping"`
	// PingDelay before IndexNow hears of a new map (S0.24).
	PingDelay time.Duration `koanf:"ping_delay"`
}

func defaultSitemap() Sitemap {
	return Sitemap{Target: "public", SkipNoindex: true, Ping: true, PingDelay: 30 * time.Second}
}

func (s Sitemap) check(r *report) {
	r.oneOf("sitemap/target", s.Target, "public", "s3", "cache")
	r.between("sitemap/page_size", s.PageSize, 0, 50000)
	r.atLeastFor("sitemap/ping_delay", s.PingDelay, 0)
}

// IndexNow says how search engines are told of changes. Whether they are told
// at all, and with which key, is the CMS's setting unless it is said here.
type IndexNow struct {
	Enabled      string   `koanf:"enabled"` // cms, on, off
	Key          Secret   `koanf:"key"`
	Mode         string   `koanf:"mode"`
	Endpoints    []string `koanf:"endpoints"`
	WriteKey     bool     `koanf:"write_key"`
	AllowPrivate bool     `koanf:"allow_private"`
}

func defaultIndexNow() IndexNow {
	return IndexNow{Enabled: "cms", Mode: "urls", Endpoints: []string{"https://api.indexnow.org/indexnow"}, WriteKey: true}
}

func (i IndexNow) check(r *report) {
	r.oneOf("indexnow/enabled", i.Enabled, "cms", "on", "off")
	r.oneOf("indexnow/mode", i.Mode, "urls", "sitemap", "both")
	if len(i.Endpoints) == 0 {
		r.add("indexnow/endpoints", "at least one address is needed")
	}
	for _, e := range i.Endpoints {
		r.webURL("indexnow/endpoints", e)
	}
}
