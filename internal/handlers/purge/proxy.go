package purge

import (
	"context"
	"net/http"
	"net/url"
)

// proxy is a Varnish or an nginx (ngx_cache_purge) beside the site. Both take the
// method PURGE for one address, with the site's name as Host. A page that was not
// cached is answered with 404 by nginx, which is as good.
//
// For the whole site, Varnish gets what the VCL of most CMS plugins knows, PURGE
// with X-Purge-Method: regex; nginx gets PURGE /*.
type proxy struct {
	requester
	Destination
}

func (p proxy) purge(ctx context.Context, urls []*url.URL) (requests int, err error) {
	return each(urls, func(u *url.URL) error { return p.one(ctx, u.Host, u.RequestURI(), nil) })
}

func (p proxy) purgeAll(ctx context.Context) error {
	if p.Type == Varnish {
		return p.one(ctx, "", "/.*", func(q *http.Request) { q.Header.Set("X-Purge-Method", "regex") })
	}
	return p.one(ctx, "", "/*", nil)
}

func (p proxy) one(ctx context.Context, host, path string, change func(*http.Request)) error {
	method := "PURGE"
	if p.Prefix != "" {
		method = http.MethodGet
	}
	_, err := p.do(ctx, method, p.URL+p.Prefix+path, nil, func(q *http.Request) {
		if host != "" {
			q.Host = host
		}
		p.bearer(q)
		if change != nil {
			change(q)
		}
	}, http.StatusNotFound)
	return err
}
