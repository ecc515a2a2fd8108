package jobstest

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between a client and a server on loopback and does what
// networks do: it cuts connections, swallows what is sent, or is slow.
type Proxy struct {
	Port int

	listener  net.Listener
	target    string
	swallow   atomic.Bool
	refuse    atomic.Bool
	delay     atomic.Int64
	commands  atomic.Int64
	mu        sync.Mutex
	conns     map[net.Conn]struct{}
	cuts      int
	listening sync.WaitGroup
}

// NewProxy forwards a free port of loopback to port until the test ends.
func NewProxy(t testing.TB, port int) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Port: l.Addr().(*net.TCPAddr).Port, listener: l, target: fmt.Sprintf("127.0.0.1:%d", port),
		conns: map[net.Conn]struct{}{}}
	p.listening.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.Cut()
		p.listening.Wait()
	})
	return p
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuse.Load() {
			client.Close()
			continue
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.keep(client, server)
		go p.pipe(client, server, (&commands{seen: &p.commands}).read)
		go p.pipe(server, client, func([]byte) {})
	}
}

func (p *Proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
}

func (p *Proxy) pipe(from, to net.Conn, look func([]byte)) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		look(buffer[:n])
		if n > 0 && !p.swallow.Load() {
			if d := p.delay.Load(); d > 0 {
				time.Sleep(time.Duration(d))
			}
			if _, werr := to.Write(buffer[:n]); werr != nil {
				err = io.EOF
			}
		}
		if err != nil {
			from.Close()
			to.Close()
			p.mu.Lock()
			delete(p.conns, from)
			delete(p.conns, to)
			p.mu.Unlock()
			return
		}
	}
}

// Cut resets every open connection, in the middle of whatever it carries.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end; failing to set it only makes it milder
		}
		c.Close()
	}
	p.cuts++
}

// Swallow makes a black hole of the connections (true) or repairs them (false).
// What was swallowed is gone, as the streams cannot be fixed: cut after it.
func (p *Proxy) Swallow(yes bool) { p.swallow.Store(yes) }

// Refuse turns new connections away (true) or lets them in again.
func (p *Proxy) Refuse(yes bool) { p.refuse.Store(yes) }

// Slow makes every packet wait d in each direction; 0 repairs the network.
func (p *Proxy) Slow(d time.Duration) { p.delay.Store(int64(d)) }

// Commands is how many commands of MySQL's protocol clients have sent through the
// proxy; each waits for its answer, so they are round trips. Logging in is none.
func (p *Proxy) Commands() int64 { return p.commands.Load() }

// commands counts packets that begin an exchange: their number in it is 0.
type commands struct {
	seen   *atomic.Int64
	header []byte
	left   int // of the packet's body
}

func (c *commands) read(b []byte) {
	for len(b) > 0 {
		if c.left > 0 {
			n := min(c.left, len(b))
			c.left, b = c.left-n, b[n:]
			continue
		}
		c.header, b = append(c.header, b[0]), b[1:]
		if len(c.header) == 4 {
			c.left = int(c.header[0]) | int(c.header[1])<<8 | int(c.header[2])<<16
			if c.header[3] == 0 {
				c.seen.Add(1)
			}
			c.header = c.header[:0]
		}
	}
}
