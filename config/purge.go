package config

import "fmt"

// Purge says which caches in front of the site hear of changed pages.
type Purge struct {
	Destinations []PurgeDestination `koanf:"destinations"`
	// Hosts are further names of the site.
	Hosts []string `koanf:"hosts"`
	// Also are paths that are purged with every change.
	Also []string `koanf:"also"`
	// Pages is how many pages of each list are purged.
	Pages int `koanf:"pages"`
	// Warm is how many pages a job asks for after its purge, WarmAtOnce how many
	// of them at the same time.
	Warm       int `koanf:"warm"`
	WarmAtOnce int `koanf:"warm_at_once"`
}

// PurgeDestination is one cache.
type PurgeDestination struct {
	Name    string `koanf:"name"` // the type when empty
	Type    string `koanf:"type"` // varnish, nginx, cloudflare, fastly, http
	URL     string `koanf:"url"`
	Prefix  string `koanf:"prefix"`  // nginx: a location for purges, /purge
	Method  string `koanf:"method"`  // http: POST when empty
	Zone    string `koanf:"zone"`    // cloudflare
	Service string `koanf:"service"` // fastly
	Token   Secret `koanf:"token"`
}

func defaultPurge() Purge { return Purge{Also: []string{"/"}, Pages: 3, Warm: 200, WarmAtOnce: 4} }

func (p Purge) check(r *report) {
	r.between("purge/pages", p.Pages, 1, 50)
	r.between("purge/warm", p.Warm, 0, 5000)
	r.between("purge/warm_at_once", p.WarmAtOnce, 1, 32)
	for i, d := range p.Destinations {
		path := fmt.Sprintf("purge/destinations/%d", i)
		r.oneOf(path, d.Type, "varnish", "nginx", "cloudflare", "fastly", "http")
		r.webURL(path+"/url", d.URL)
		switch {
		case d.Type == "cloudflare" && (d.Zone == "" || d.Token == ""):
			r.add(path, "cloudflare needs zone and token, with the permission Cache Purge")
		case d.Type == "fastly" && (d.Service == "" || d.Token == ""):
			r.add(path, "fastly needs service and token, with the scope purge_select or purge_all")
		case d.URL == "" && (d.Type == "varnish" || d.Type == "nginx" || d.Type == "http"):
			r.add(path, "%s needs its url", d.Type)
		}
	}
}
