package outbound

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// Webhooks, IndexNow, chats and attachments are all read by this client.
func TestHostileWebServersCostLittle(t *testing.T) {
	pour := func(w io.Writer, piece string) {
		block := strings.Repeat(piece, max(1, (64<<10)/len(piece)))
		for sent := 0; sent < 256<<20; sent += len(block) {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}
	for name, serve := range map[string]func(net.Conn){
		"an endless status line": func(c net.Conn) { pour(c, "HTTP/1.1 200 ") },
		"an endless header":      func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nX-A: "); pour(c, "a") },
		"endless headers":        func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\n"); pour(c, "X-A: b\r\n") },
		"an endless body":        func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n"); pour(c, "a") },
		"endless chunks": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			pour(c, "1\r\na\r\n")
		},
		"an endless chunk's name": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")
			pour(c, "a")
		},
		"endless trailers": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n0\r\n")
			pour(c, "X-A: b\r\n")
		},
		"provisional answers without end": func(c net.Conn) { pour(c, "HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n") },
		"a bomb": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
			z := gzip.NewWriter(c)
			pour(z, "a")
			z.Close()
		},
		"a body that is longer than it says": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n")
			pour(c, "a")
		},
		"an answer before the question": nil,
		"a drip": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
			for {
				if _, err := io.WriteString(c, "a"); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					if serve == nil {
						pour(c, "a")
						return
					}
					_, _ = c.Read(make([]byte, 4096))
					serve(c)
				}()
			}
		}()
		client := New(Options{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Timeout: 3 * time.Second})
		before, most := resident(t), int64(0)
		done, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				most = max(most, resident(t))
				select {
				case <-done:
					return
				case <-time.After(2 * time.Millisecond):
				}
			}
		}()
		answer, err := client.Get("http://" + l.Addr().String())
		if err == nil {
			_, err = ReadBody(answer)
		}
		close(done)
		<-stopped
		client.CloseIdleConnections()
		l.Close()
		if err == nil || len(err.Error()) > 4000 || strings.Contains(err.Error(), "PeekFail") {
			t.Errorf("%s: %.300v", name, err)
		}
		if grown := most - before; grown > 64<<20 {
			t.Errorf("%s: the memory grew by %d MiB", name, grown>>20)
		}
	}
}

// The error names a server that sends before it was asked; whether net/http
// notices it then or while it reads the answer is a matter of time.
func TestAServerThatSpeaksFirstIsNamed(t *testing.T) {
	for _, text := range []string{"readLoopPeekFailLocked: %!w(<nil>)", "readLoopPeekFailLocked: reset"} {
		if got := plainly(errors.New(text)).Error(); !strings.Contains(got, "before it was asked") {
			t.Errorf("%s became %s", text, got)
		}
	}
	if err := errors.New("another"); plainly(err) != err {
		t.Error("another error is changed")
	}
}

// resident is the resident memory of this process in bytes.
func resident(t *testing.T) int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Log("this system does not tell the resident memory: ", err)
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		t.Error(err)
	}
	return pages * int64(os.Getpagesize())
}
