package outbound

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// talk returns a bounded connection to a server that runs serve.
func talk(t *testing.T, l ReadLimits, serve func(net.Conn)) net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		if c, err := listener.Accept(); err == nil {
			defer c.Close()
			serve(c)
		}
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return Limit(conn, l)
}

// endless writes the same piece until the client goes.
func endless(piece string) func(net.Conn) {
	return func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}
}

func TestEndlessLinesAndAnswersEnd(t *testing.T) {
	for name, c := range map[string]struct {
		limits ReadLimits
		piece  string
		most   int
	}{
		"line":   {ReadLimits{Line: 1000, Answer: 1 << 30}, strings.Repeat("a", 300), 1000},
		"answer": {ReadLimits{Line: 1000, Answer: 10_000}, "250-more\r\n", 10_000},
	} {
		conn := talk(t, c.limits, endless(c.piece))
		read, err := io.Copy(io.Discard, conn)
		if !errors.Is(err, ErrUnbounded) || read > int64(c.most) {
			t.Errorf("%s: %d bytes, %v", name, read, err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, ErrUnbounded) {
			t.Errorf("%s: it can be read again: %v", name, err)
		}
	}
}

// A line of exactly the limit passes, and each request has its own answer.
func TestWithinTheLimitsNothingIsLost(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	conn := talk(t, ReadLimits{Line: 100, Answer: 300}, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			if _, err := r.ReadString('\n'); err != nil {
				return
			}
			if _, err := io.WriteString(c, line+line+line); err != nil {
				return
			}
		}
	})
	r := bufio.NewReader(conn)
	for request := range 20 {
		if _, err := io.WriteString(conn, "go\n"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got, err := r.ReadString('\n'); err != nil || got != line {
				t.Fatalf("request %d: %q, %v", request, got, err)
			}
		}
	}
}

// A server that sends a byte now and then keeps no one waiting for ever, though
// each wait by itself is short.
func TestADripEnds(t *testing.T) {
	conn := talk(t, ReadLimits{Time: 200 * time.Millisecond}, func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, "a"); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	var timeout net.Error
	if _, err := io.Copy(io.Discard, conn); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("it ended with %v", err)
	}
}

func TestADialerAsksForTheAddressAfterDNS(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		if c, err := (Dialer{}).DialContext(t.Context(), "tcp4", net.JoinHostPort(host, port)); !errors.Is(err,
			ErrRefused) {
			t.Errorf("%s: %v, %v", host, c, err)
		}
	}
	allowed := Dialer{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	c, err := allowed.DialContext(t.Context(), "tcp4", net.JoinHostPort("localhost", port))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
