package mail

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// pool keeps connections open for a burst of mail. A connection carries one
// transaction at a time.
type pool struct {
	tls                           *tls.Config
	commandTimeout, answerTimeout time.Duration
	size                          int
	idle                          time.Duration
	allowPrivate                  []netip.Prefix

	mu    sync.Mutex
	free  []*connection // the newest last
	ended bool
}

func newPool(c Config) *pool {
	return &pool{tls: c.TLS, commandTimeout: c.CommandTimeout, answerTimeout: c.AnswerTimeout, size: c.IdleConnections,
		idle:         c.IdleTimeout,
		allowPrivate: c.AllowPrivate}
}

// maxMessages on one connection: servers close it some time, politely or not.
const maxMessages = 100

// connection is one to an SMTP server, greeted, secured, authenticated.
type connection struct {
	client *smtp.Client
	raw    net.Conn
	// opened for this transport, password included: another one needs another.
	transport                     [sha256.Size]byte
	commandTimeout, answerTimeout time.Duration
	used                          bool // carried a transaction before
	messages                      int
	expiry                        *time.Timer
}

func (t Transport) fingerprint() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s\x00%s\x00%s\x00%t", t.Host, t.Port, t.Username,
		string(t.Password), t.TLS, t.EHLO, t.foreign))
}

// take returns an idle connection to t's server, or a new one.
func (p *pool) take(ctx context.Context, t Transport) (*connection, error) {
	want := t.fingerprint()
	p.mu.Lock()
	for i := len(p.free) - 1; i >= 0; i-- {
		c := p.free[i]
		if c.transport == want && c.expiry.Stop() {
			p.free = append(p.free[:i], p.free[i+1:]...)
			p.mu.Unlock()
			return c, nil
		}
	}
	p.mu.Unlock()
	return p.dial(ctx, t)
}

// give returns a connection that may be used again.
func (p *pool) give(c *connection) {
	c.used = true
	c.messages++
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || len(p.free) >= p.size || c.messages >= maxMessages {
		go c.quit()
		return
	}
	c.expiry = time.AfterFunc(p.idle, func() { p.expire(c) })
	p.free = append(p.free, c)
}

func (p *pool) expire(c *connection) {
	p.mu.Lock()
	for i := range p.free {
		if p.free[i] == c {
			p.free = append(p.free[:i], p.free[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	c.quit()
}

func (p *pool) close() {
	p.mu.Lock()
	free := p.free
	p.free, p.ended = nil, true
	p.mu.Unlock()
	for _, c := range free {
		if c.expiry.Stop() {
			c.quit()
		}
	}
}

// dial opens a connection. Whatever fails on the way closes it.
func (p *pool) dial(ctx context.Context, t Transport) (*connection, error) {
	c := &connection{transport: t.fingerprint(), commandTimeout: p.commandTimeout, answerTimeout: p.answerTimeout}
	client, err := mail.NewClient(t.Host, p.options(t, c)...)
	if err != nil {
		return nil, fmt.Errorf("the mail settings cannot be used: %w", err)
	}
	if c.client, err = client.DialToSMTPClientWithContext(ctx); err != nil {
		if c.raw != nil {
			c.close()
		}
		return nil, fmt.Errorf("connecting to %s: %w", t.Address(), err)
	}
	return c, nil
}

// answerLimits are far above what SMTP allows (RFC 5321, 4.5.3.1: 512 bytes a
// line). Below TLS only the second one holds, which is enough.
var answerLimits = outbound.ReadLimits{Line: 64 << 10, Answer: 1 << 20}

// connect opens the bare connection. A host that only the CMS's settings name
// must be public, or allowed: else the settings could reach what only this
// machine can.
func (p *pool) connect(ctx context.Context, t Transport, network, address string) (net.Conn, error) {
	if !t.foreign {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	conn, err := (outbound.Dialer{AllowPrivate: p.allowPrivate}).DialContext(ctx, network, address)
	if errors.Is(err, outbound.ErrRefused) {
		return nil, jobs.Permanent(fmt.Errorf("the CMS's settings name the mail host %s: %w (mail.allow_private)",
			t.Host, err))
	}
	return conn, err
}

func (p *pool) options(t Transport, c *connection) []mail.Option {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.tls != nil {
		config = p.tls.Clone()
	}
	config.ServerName = t.Host
	options := []mail.Option{
		mail.WithPort(t.Port), mail.WithTimeout(p.commandTimeout), mail.WithTLSConfig(config),
		mail.WithTLSPolicy(policyOf(t)),
		mail.WithDialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			raw, err := p.connect(ctx, t, network, address)
			if err != nil {
				return nil, err
			}
			c.raw = outbound.Limit(raw, answerLimits)
			if t.TLS == TLSImplicit { // go-mail wants to see the *tls.Conn itself
				return tls.Client(c.raw, config), nil
			}
			return c.raw, nil
		}),
	}
	if t.Username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(t.Username),
			mail.WithPassword(string(t.Password)))
	}
	if t.EHLO != "" {
		options = append(options, mail.WithHELO(t.EHLO))
	}
	return options
}

// policyOf insists on TLS where a password would cross a network in clear.
func policyOf(t Transport) mail.TLSPolicy {
	switch t.TLS {
	case TLSStart:
		return mail.TLSMandatory
	case TLSNone:
		return mail.NoTLS
	case TLSAuto:
		if ip := net.ParseIP(t.Host); t.Username != "" && t.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return mail.TLSMandatory
		}
	}
	return mail.TLSOpportunistic
}

func (c *connection) extension(name string) bool {
	there, _ := c.client.Extension(name)
	return there
}

// patience gives the next exchange its time. A connection that is closed
// already says so at that exchange.
func (c *connection) patience(d time.Duration) {
	_ = c.raw.SetDeadline(time.Now().Add(d))
}

// say sends lines in one packet.
func (c *connection) say(lines ...string) error {
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n") { // addresses are checked long before; this is the last gate
			return fmt.Errorf("a command of SMTP must be one line: %.60q", line)
		}
	}
	c.patience(c.commandTimeout)
	for _, line := range lines {
		if _, err := c.client.Text.W.WriteString(line + "\r\n"); err != nil {
			return err
		}
	}
	return c.client.Text.W.Flush()
}

// answer waits for one answer; one that does not begin with expect is a
// *textproto.Error.
func (c *connection) answer(expect int) (int, string, error) {
	c.patience(c.commandTimeout)
	return c.read(expect)
}

func (c *connection) read(expect int) (int, string, error) {
	return c.client.Text.ReadResponse(expect)
}

// reset forgets the transaction; an error means that the connection is lost.
func (c *connection) reset() error {
	if err := c.say("RSET"); err != nil {
		return err
	}
	_, _, err := c.answer(250)
	return err
}

// watch closes the connection when ctx ends, which wakes anyone who waits on it.
func (c *connection) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, c.close)
}

// close drops the connection without a word.
func (c *connection) close() { _ = c.raw.Close() }

// quit says goodbye; the server's answer changes nothing.
func (c *connection) quit() {
	c.patience(2 * time.Second)
	_ = c.client.Quit()
	c.close()
}

var enhancedStatus = regexp.MustCompile(`\b([245]\.\d{1,3}\.\d{1,3})\b`)

// statusIn finds the enhanced status code (RFC 3463) in an answer.
func statusIn(answer string) string { return enhancedStatus.FindString(answer) }

// stableID is 128 bits of a hash, in hex.
func stableID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}
