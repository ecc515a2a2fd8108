package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// cloudflare is its API, version 4. One call takes 30 addresses on every plan.
type cloudflare struct {
	requester
	Destination
}

const perCloudflareCall = 30

func (c cloudflare) purge(ctx context.Context, urls []*url.URL) (requests int, err error) {
	return eachChunk(urls, perCloudflareCall, func(addresses []string) error {
		return c.call(ctx, map[string]any{"files": addresses})
	})
}

func (c cloudflare) purgeAll(ctx context.Context) error {
	return c.call(ctx, map[string]any{"purge_everything": true})
}

// call wants success in the answer too: Cloudflare's errors may come with 200.
func (c cloudflare) call(ctx context.Context, body any) error {
	said, err := c.do(ctx, http.MethodPost, c.URL+"/zones/"+url.PathEscape(c.Zone)+"/purge_cache", body, c.bearer)
	if err != nil {
		return err
	}
	var answer struct {
		Success bool `json:"success"`
		Errors  []struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(said, &answer); err != nil {
		return errors.New("its answer is no JSON")
	}
	if !answer.Success {
		var why []string
		for _, e := range answer.Errors {
			why = append(why, fmt.Sprintf("%d %s", e.Code, jobs.PlainText(e.Message, maxSaid)))
		}
		return fmt.Errorf("it refused: %s", strings.Join(why, "; "))
	}
	return nil
}

// fastly is its API: a purge of an address is a request for it.
type fastly struct {
	requester
	Destination
}

func (f fastly) purge(ctx context.Context, urls []*url.URL) (requests int, err error) {
	return each(urls, func(u *url.URL) error {
		_, err := f.do(ctx, http.MethodPost, f.URL+"/purge/"+u.Host+u.RequestURI(), nil, f.key)
		return err
	})
}

func (f fastly) purgeAll(ctx context.Context) error {
	_, err := f.do(ctx, http.MethodPost, f.URL+"/service/"+url.PathEscape(f.Service)+"/purge_all", nil, f.key)
	return err
}

func (f fastly) key(q *http.Request) { q.Header.Set("Fastly-Key", f.token) }

// general is any other service: a request for each address where its URL has {url},
// else one with all of them as JSON.
type general struct {
	requester
	Destination
}

const perGeneralCall = 500

func (g general) purge(ctx context.Context, urls []*url.URL) (requests int, err error) {
	if strings.Contains(g.URL, "{url}") {
		return each(urls, func(u *url.URL) error {
			return g.call(ctx, strings.ReplaceAll(g.URL, "{url}", url.QueryEscape(u.String())), nil)
		})
	}
	return eachChunk(urls, perGeneralCall, func(addresses []string) error {
		return g.call(ctx, g.URL, map[string]any{"urls": addresses, "all": false})
	})
}

func (g general) purgeAll(ctx context.Context) error {
	return g.call(ctx, strings.ReplaceAll(g.URL, "{url}", "*"), map[string]any{"urls": []string{}, "all": true})
}

func (g general) call(ctx context.Context, address string, body any) error {
	method := g.Method
	if method == "" {
		method = http.MethodPost
	}
	_, err := g.do(ctx, method, address, body, g.bearer)
	return err
}
