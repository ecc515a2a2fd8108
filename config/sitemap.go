package config

// Sitemap says what stands in the site's maps and where they are written.
type Sitemap struct {
	Target      string `koanf:"target"` // folder, s3, cache
	Dir         string `koanf:"dir"`    // "" is the CMS's public folder
	Profile     string `koanf:"profile"`
	Naming      string `koanf:"naming"`
	PerFile     int    `koanf:"per_file"`
	Images      bool   `koanf:"images"`
	Alternates  bool   `koanf:"alternates"`
	News        bool   `koanf:"news"`
	Videos      bool   `koanf:"videos"`
	Publication string `koanf:"publication"`
	Gzip        bool   `koanf:"gzip"`
	Stylesheet  bool   `koanf:"stylesheet"`
	Robots      bool   `koanf:"robots"`
	LLMs        bool   `koanf:"llms"`
	KeepNoindex bool   `koanf:"keep_noindex"`
}

func defaultSitemap() Sitemap {
	return Sitemap{Target: "folder", Profile: "specification", Naming: "auto", Alternates: true, Stylesheet: true}
}

func (s Sitemap) check(r *report) {
	r.oneOf("sitemap/target", s.Target, "folder", "s3", "cache")
	r.oneOf("sitemap/profile", s.Profile, "specification", "botble")
	r.oneOf("sitemap/naming", s.Naming, "auto", "botble", "plain")
	r.between("sitemap/per_file", s.PerFile, 0, 50000)
}

// IndexNow says how search engines are notified of changes. Whether they are notified
// at all, and with which key, are the CMS's settings.
type IndexNow struct {
	Mode      string   `koanf:"mode"`
	Endpoints []string `koanf:"endpoints"`
	WriteKey  bool     `koanf:"write_key"`
	Batch     int      `koanf:"batch"`
}

func defaultIndexNow() IndexNow {
	return IndexNow{Mode: "urls", Endpoints: []string{"https://api.indexnow.org/indexnow"}, WriteKey: true,
		Batch: 10000}
}

func (i IndexNow) check(r *report) {
	r.oneOf("indexnow/mode", i.Mode, "urls", "sitemap", "both")
	r.between("indexnow/batch", i.Batch, 1, 10000)
	if len(i.Endpoints) == 0 {
		r.add("indexnow/endpoints", "at least one address is needed")
	}
	for _, e := range i.Endpoints {
		r.webURL("indexnow/endpoints", e)
	}
}
