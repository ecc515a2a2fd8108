package purge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// Types of destinations.
const (
	Varnish    = "varnish"
	Nginx      = "nginx"
	Cloudflare = "cloudflare"
	Fastly     = "fastly"
	HTTP       = "http" // any other service
)

// Types are all of them.
func Types() []string { return []string{Varnish, Nginx, Cloudflare, Fastly, HTTP} }

// Destination is a cache in front of the site.
type Destination struct {
	// Name stands in results; the type when empty.
	Name string
	Type string
	// URL is where a proxy listens (http://127.0.0.1:6081), or the address of a
	// request of the type http, in which {url} stands for the page's. Cloudflare
	// and Fastly have their own.
	URL string
	// Prefix is put before paths by an nginx whose purges are a location of
	// their own (/purge); such requests are GETs.
	Prefix string
	// Method of the type http: POST when empty.
	Method string
	// Zone is Cloudflare's, Service Fastly's.
	Zone, Service string
	// Token is sent as the service wants it, or as a Bearer token. It is in no
	// error.
	Token string
}

// destination is one that is opened.
type destination struct {
	Destination
	to purger
}

// purger speaks to one cache.
type purger interface {
	// purge says how many requests it made.
	purge(ctx context.Context, urls []*url.URL) (requests int, err error)
	purgeAll(ctx context.Context) error
}

func (d Destination) withDefaults() Destination {
	if d.Name == "" {
		d.Name = d.Type
	}
	switch {
	case d.URL != "":
	case d.Type == Cloudflare:
		d.URL = "https://api.cloudflare.com/client/v4"
	case d.Type == Fastly:
		d.URL = "https://api.fastly.com"
	}
	d.URL = strings.TrimSuffix(d.URL, "/")
	return d
}

// open says what is missing.
func (d Destination) open(client *http.Client, now func() time.Time) (purger, error) {
	if u, err := url.Parse(strings.ReplaceAll(d.URL, "{url}", "x")); err != nil || u.Host == "" {
		return nil, errors.New("its url is no address like http://127.0.0.1:6081")
	}
	r := requester{client, now, d.Token}
	switch d.Type {
	case Varnish, Nginx:
		return proxy{r, d}, nil
	case Cloudflare:
		if d.Zone == "" || d.Token == "" {
			return nil, errors.New("it needs its zone and a token with the permission Cache Purge")
		}
		return cloudflare{r, d}, nil
	case Fastly:
		if d.Service == "" || d.Token == "" {
			return nil, errors.New("it needs its service and a token with the scope purge_select or purge_all")
		}
		return fastly{r, d}, nil
	case HTTP:
		return general{r, d}, nil
	default:
		return nil, fmt.Errorf("its type is %q; known are %s", d.Type, strings.Join(Types(), ", "))
	}
}

// requester makes the requests of all destinations.
type requester struct {
	client *http.Client
	now    func() time.Time
	token  string
}

// each makes a request for each address, until one fails, and says how many it made.
func each(urls []*url.URL, request func(*url.URL) error) (requests int, err error) {
	for i, u := range urls {
		if err := request(u); err != nil {
			return i + 1, fmt.Errorf("%s: %w", u.RequestURI(), err)
		}
	}
	return len(urls), nil
}

// eachChunk makes a request for so many addresses at once.
func eachChunk(urls []*url.URL, most int, request func(addresses []string) error) (requests int, err error) {
	for chunk := range slices.Chunk(urls, most) {
		addresses := make([]string, len(chunk))
		for i, u := range chunk {
			addresses[i] = u.String()
		}
		requests++
		if err := request(addresses); err != nil {
			return requests, err
		}
	}
	return requests, nil
}

// maxSaid is how much of a refusal is repeated.
const maxSaid = 200

// do sends a request whose answer must be one of 2xx, or one that the caller
// takes too. It returns the answer's body.
func (r requester) do(ctx context.Context, method, address string, body any, change func(*http.Request),
	also ...int) ([]byte, error) {
	var payload bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&payload).Encode(body); err != nil {
			return nil, fmt.Errorf("writing the request: %w", err)
		}
	}
	q, err := http.NewRequestWithContext(ctx, method, address, &payload)
	if err != nil {
		return nil, jobs.Permanent(errors.New("its address makes no request"))
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(q)
	}
	answer, err := r.client.Do(q) //nolint:bodyclose // ReadBody closes it
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", outbound.WithoutAddress(err))
	}
	said, err := outbound.ReadBody(answer)
	switch {
	case answer.StatusCode/100 == 2 && err == nil:
		return said, nil
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	for _, status := range also {
		if answer.StatusCode == status {
			return said, nil
		}
	}
	return nil, r.refused(answer, said)
}

// refused is the error of an answer, with the time after which it may be repeated.
func (r requester) refused(answer *http.Response, said []byte) error {
	err := fmt.Errorf("it answered %s: %s", answer.Status, jobs.PlainText(string(said), maxSaid))
	switch {
	case answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable:
		if wait, _ := outbound.RetryAfter(answer.Header.Get("Retry-After"), r.now()); wait > 0 {
			return jobs.RetryAfter(err, min(wait, time.Hour))
		}
		return err
	case answer.StatusCode/100 == 4:
		return jobs.Permanent(err)
	default:
		return err
	}
}

func (r requester) bearer(q *http.Request) {
	if r.token != "" {
		q.Header.Set("Authorization", "Bearer "+r.token)
	}
}
