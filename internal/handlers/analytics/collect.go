package analytics

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// maxBody bounds what a visitor may send.
const maxBody = 4 << 10

// flushEvery and flushAt say when waiting views are written.
const (
	flushEvery = time.Second
	flushAt    = 1000
)

// Collector takes page views over HTTP and writes them in batches. It never
// waits for the database: a full buffer drops views and counts them.
type Collector struct {
	h        *Handler
	views    chan View
	accepted atomic.Int64
	stored   atomic.Int64
	dropped  atomic.Int64
	refused  atomic.Int64

	mu      sync.Mutex
	buckets map[netip.Addr]*rate.Limiter
	swept   time.Time
}

// NewCollector returns a collector; Run writes what it takes.
func (h *Handler) NewCollector() *Collector {
	return &Collector{h: h, views: make(chan View, h.Buffer), buckets: map[netip.Addr]*rate.Limiter{}}
}

// Counts are the collector's figures since its start. accepted = stored +
// dropped + what still waits.
type Counts struct{ Accepted, Stored, Dropped, Refused int64 }

// Counts returns the figures at this moment.
func (c *Collector) Counts() Counts {
	return Counts{c.accepted.Load(), c.stored.Load(), c.dropped.Load(), c.refused.Load()}
}

// hit is what the script, or a server on its visitor's behalf, sends.
type hit struct {
	URL      string `json:"u"`
	Referrer string `json:"r"`
	Event    string `json:"n,omitempty"` // its name; "" is a view
	// Only with the right of a server (Server): who the visitor is.
	Address string `json:"ip,omitempty"`
	Agent   string `json:"ua,omitempty"`
}

// ServeHTTP takes a view from a visitor's browser: POST /collect.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.serve(w, r, false)
}

// Server takes views that the CMS's own server reports, which sees visitors
// without JavaScript too: POST /collect/server with the key as a bearer token
// and, beside what the script sends, the visitor's "ip" and "ua". An empty key
// lets nobody in.
func (c *Collector) Server(key string) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + key))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if key == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			c.refused.Add(1)
			http.Error(w, "the key of analytics.server_key is needed, as Authorization: Bearer",
				http.StatusUnauthorized)
			return
		}
		c.serve(w, r, true)
	})
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request, server bool) {
	// The script is on the site, the collector perhaps on another name. No
	// cookies are involved, so that any origin may send.
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodOptions {
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "send a view by POST", http.StatusMethodNotAllowed)
		return
	}
	status := c.take(r, server)
	if status >= 400 {
		c.refused.Add(1)
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.WriteHeader(status)
}

// take puts a view into the buffer and returns the status to answer.
func (c *Collector) take(r *http.Request, server bool) int {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil || len(body) > maxBody {
		return http.StatusRequestEntityTooLarge
	}
	var in hit
	if err := json.Unmarshal(body, &in); err != nil {
		return http.StatusBadRequest
	}
	v, err := in.view()
	if err != nil {
		return http.StatusBadRequest
	}
	if !c.h.counts(v.Host) {
		return http.StatusForbidden
	}
	v.At, v.Agent, v.Prefetch = c.h.Now(), r.UserAgent(), prefetched(r.Header)
	address := c.h.address(r)
	if server {
		if address, err = netip.ParseAddr(in.Address); err != nil || in.Agent == "" {
			return http.StatusBadRequest // all visitors would be one
		}
		v.Agent = in.Agent
	} else if c.h.RespectDoNotTrack && (r.Header.Get("DNT") == "1" || r.Header.Get("Sec-GPC") == "1") {
		return http.StatusNoContent
	} else if !c.allow(address) {
		return http.StatusTooManyRequests
	}
	v.Address = address.String()
	c.accepted.Add(1)
	select {
	case c.views <- v:
	default:
		c.dropped.Add(1)
	}
	return http.StatusNoContent
}

// view is the view or event that was sent, without when and by whom.
func (in hit) view() (View, error) {
	page, err := url.Parse(in.URL)
	if err != nil {
		return View{}, fmt.Errorf("reading the address of a view: %w", err)
	}
	event, ok := eventName(in.Event)
	if page.Host == "" || !ok {
		return View{}, errors.New("a view without a host, or an event without a name")
	}
	return View{Host: page.Host, Path: page.EscapedPath(), Query: page.RawQuery, Referrer: in.Referrer,
		Event: event}, nil
}

// counts says whether views of a host are wanted.
func (h *Handler) counts(host string) bool {
	host = cleanHost(host)
	if len(h.Hosts) == 0 {
		own := h.ownHost()
		return own == "" || own == host
	}
	for _, allowed := range h.Hosts {
		if cleanHost(allowed) == host {
			return true
		}
	}
	return false
}

// ownHost is the CMS's own host, "" when its address is unknown.
func (h *Handler) ownHost() string {
	own, err := url.Parse(h.Site.URL())
	if err != nil {
		return ""
	}
	return cleanHost(own.Host)
}

// prefetched knows requests by which a browser only guesses.
func prefetched(header http.Header) bool {
	purpose := header.Get("Sec-Purpose") + header.Get("Purpose") + header.Get("X-Purpose") + header.Get("X-Moz")
	return strings.Contains(purpose, "prefetch") || strings.Contains(purpose, "preview")
}

// address is the visitor's: the connection's, or what trusted proxies say.
func (h *Handler) address(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	address, _ := netip.ParseAddr(host)
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0 && h.trusted(address); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(forwarded[i]))
		if err != nil {
			break
		}
		address = next
	}
	return address.Unmap()
}

func (h *Handler) trusted(a netip.Addr) bool {
	for _, p := range h.TrustedProxies {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// allow keeps one address from filling the table. Addresses of one IPv6
// network of one home are one.
func (c *Collector) allow(a netip.Addr) bool {
	if a.Is6() {
		if network, err := a.Prefix(64); err == nil {
			a = network.Addr()
		}
	}
	now := c.h.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.swept) > time.Minute || len(c.buckets) > 100_000 {
		clear(c.buckets) // a minute's memory is enough
		c.swept = now
	}
	limiter := c.buckets[a]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Limit(c.h.PerAddress), int(5*c.h.PerAddress))
		c.buckets[a] = limiter
	}
	return limiter.AllowN(now, 1)
}

// Run writes views in batches until ctx ends, then writes what waits.
func (c *Collector) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	batch := make([]View, 0, flushAt)
	for {
		select {
		case <-ctx.Done():
			return c.last(batch)
		case v := <-c.views:
			if batch = append(batch, v); len(batch) < flushAt {
				continue
			}
		case <-tick.C:
		}
		if err := c.flush(ctx, batch); err != nil {
			c.h.Logger.Warn("page views not stored; they are dropped and counted",
				"event", "analytics.store_failed", "views", len(batch), "error", err)
		}
		batch = batch[:0]
	}
}

// last writes what waits when the collector stops.
func (c *Collector) last(batch []View) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for {
		select {
		case v := <-c.views:
			batch = append(batch, v)
		default:
			return c.flush(ctx, batch)
		}
	}
}

func (c *Collector) flush(ctx context.Context, batch []View) error {
	if len(batch) == 0 {
		return nil
	}
	dropped, err := c.h.Store(ctx, batch)
	if err != nil {
		c.dropped.Add(int64(len(batch)))
		return err
	}
	c.dropped.Add(dropped)
	c.stored.Add(int64(len(batch)) - dropped)
	return nil
}

// Store writes views and events, but for late ones, and for events of a day that has too
// many names; dropped says how many those were.
func (h *Handler) Store(ctx context.Context, views []View) (dropped int64, err error) {
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return 0, err
	}
	rows := make([]row, 0, len(views))
	for _, v := range views {
		r, err := h.row(ctx, v, zone)
		if err != nil {
			return 0, err
		}
		known, err := h.names.admit(ctx, h, &r)
		if err != nil {
			return 0, err
		}
		if known {
			rows = append(rows, r)
		} else {
			dropped++
		}
	}
	late, err := h.keep(ctx, rows)
	return dropped + late, err
}

// row hashes away who the visitor was and keeps what is counted.
func (h *Handler) row(ctx context.Context, v View, zone *time.Location) (row, error) {
	r := row{day: v.At.In(zone).Format(time.DateOnly), at: v.At.UnixMilli(), nonce: v.Nonce, site: cleanHost(v.Host),
		path: cleanPath(v.Path), event: v.Event, kind: kindView}
	if r.event != "" {
		r.kind = kindEvent
	}
	if r.nonce == ([8]byte{}) {
		r.nonce = randomNonce()
	}
	salt, err := h.salts.of(ctx, r.day)
	if err != nil {
		return row{}, fmt.Errorf("hashing a visitor: %w", err)
	}
	r.visitor = visitor(salt, r.site, v.Address, v.Agent)
	r.referrer = referrerGroup(v.Referrer, r.site)
	r.campaign, r.term, r.content = campaign(v.Query)
	c := h.agents.read(v.Agent)
	r.device, r.browser, r.os = c.device, c.browser, c.os
	if address, err := netip.ParseAddr(v.Address); err == nil && h.Countries != nil {
		r.country = clean(h.Countries.Country(address), 2)
	}
	switch {
	case c.bot || v.Prefetch:
		r.kind = kindBot
	case h.spam.has(v.Referrer):
		r.kind = kindSpam
	}
	return r, nil
}
