package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrRefused says that a request was not sent, because its target is not one
// that may be reached. Repeating it would not help.
var ErrRefused = errors.New("the address is refused")

// ErrTooLarge says that a body was longer than Options.MaxBody.
var ErrTooLarge = errors.New("the answer is larger than allowed")

// Options say what a client may do; the zero value is the strict default.
type Options struct {
	// Timeout of a whole exchange, the body included; 10 s when 0.
	Timeout time.Duration
	// AllowPrivate are ranges that may be reached although they are not
	// public, on any port: the owner named them.
	AllowPrivate []netip.Prefix
	// AllowHTTP lets requests go out unencrypted.
	AllowHTTP bool
	// Ports that public hosts may be reached on; 80 and 443 when empty.
	Ports []uint16
	// MaxBody is how many bytes of an answer are read, after decompression;
	// 1 MiB when 0.
	MaxBody int64
	// SameHostRedirects follows up to 3 redirects that stay on the host and
	// never go from https to http. Else the redirect itself is the answer.
	SameHostRedirects bool
	// UserAgent is sent where a request names none.
	UserAgent string
	// RootCAs replaces the system's, for servers with a certificate of their
	// own. Nothing else of TLS can be loosened.
	RootCAs *x509.CertPool
}

const (
	defaultTimeout = 10 * time.Second
	defaultMaxBody = 1 << 20
	maxRedirects   = 3
)

// New returns a client that keeps to o. It is safe for concurrent use; make
// one and keep it.
func New(o Options) *http.Client {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if len(o.Ports) == 0 {
		o.Ports = []uint16{80, 443}
	}
	dialer := &net.Dialer{Timeout: o.Timeout, ControlContext: o.control}
	return &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: o.redirect,
		Transport: &transport{options: o, base: &http.Transport{
			Proxy:                  nil, // a proxy would dial for us, unchecked
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
			TLSHandshakeTimeout:    o.Timeout,
			ResponseHeaderTimeout:  o.Timeout,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        30 * time.Second,
			ForceAttemptHTTP2:      true,
		}},
	}
}

// control runs after DNS and before connect(2), for each address that is tried.
func (o Options) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is no IP address with a port", ErrRefused, address)
	}
	ip := target.Addr().Unmap()
	if ip.Zone() == "" && within(o.AllowPrivate, ip) {
		return nil
	}
	if err := checkAddress(nil, ip); err != nil {
		return err
	}
	if !slices.Contains(o.Ports, target.Port()) {
		return fmt.Errorf("%w: port %d is not one of %v", ErrRefused, target.Port(), o.Ports)
	}
	return nil
}

func (o Options) redirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case !o.SameHostRedirects:
		return http.ErrUseLastResponse
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: more than %d redirects", ErrRefused, maxRedirects)
	case next.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: %s redirects to another host, %s", ErrRefused, first.URL.Host, next.URL.Host)
	case first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("%w: a redirect leaves https", ErrRefused)
	}
	return nil
}

type transport struct {
	options Options
	base    *http.Transport
}

// RoundTrip checks what can be seen before DNS, for each request of a chain.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.URL.Scheme != "https" && (r.URL.Scheme != "http" || !t.options.AllowHTTP):
		return nil, t.refuse(r, "%q addresses are not allowed, use https", r.URL.Scheme)
	case r.URL.User != nil:
		return nil, t.refuse(r, "it carries a user name")
	case r.URL.Hostname() == "":
		return nil, t.refuse(r, "it names no host")
	}
	if t.options.UserAgent != "" && r.Header.Get("User-Agent") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", t.options.UserAgent)
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, plainly(err)
	}
	resp.Body = &limited{ReadCloser: resp.Body, left: t.options.MaxBody}
	return resp, nil
}

// plainly replaces what net/http says of a server that speaks before it was
// asked: the name of one of its functions, and no cause.
func plainly(err error) error {
	if strings.HasPrefix(err.Error(), "readLoopPeekFailLocked:") {
		return errors.New("the server sent something before it was asked, which is no HTTP")
	}
	return err
}

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// refuse closes the request's body, as RoundTrippers must.
func (t *transport) refuse(r *http.Request, why string, args ...any) error {
	err := fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(why, args...))
	if r.Body != nil {
		return errors.Join(err, r.Body.Close())
	}
	return err
}

// limited gives ErrTooLarge when a body goes on after its limit.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if int64(n) > l.left {
		n, l.left = int(l.left), 0
		return n, ErrTooLarge
	}
	l.left -= int64(n)
	return n, err
}

// ReadBody reads what is left of an answer and closes it, so that its
// connection can be used again.
func ReadBody(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(resp.Body)
	return body, errors.Join(err, resp.Body.Close())
}
