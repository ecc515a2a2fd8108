package web_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// servedByTLS is a site on a TLS listener as "cmsjobs run" makes it, and how to connect to it.
func servedByTLS(t *testing.T) (address string, dial func() net.Conn, client *http.Client) {
	t.Helper()
	lender := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is for 127.0.0.1
	t.Cleanup(lender.Close)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = plain.Addr().String()
	servedOn(t, tls.NewListener(plain, &tls.Config{
		Certificates: lender.TLS.Certificates, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}))
	transport := lender.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = true
	t.Cleanup(transport.CloseIdleConnections)
	trust := transport.TLSClientConfig.Clone()
	trust.NextProtos = []string{"http/1.1"}
	return address, func() net.Conn {
		c, err := tls.Dial("tcp", address, trust)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}, &http.Client{Transport: transport}
}

func TestTwoLengthsAreRefused(t *testing.T) {
	_, address := served(t)
	refusesTwoLengths(t, func(text string) string { return raw(t, address, text) })
}

func TestTwoLengthsAreRefusedOverTLS(t *testing.T) {
	address, dial, client := servedByTLS(t)
	refusesTwoLengths(t, func(text string) string { return rawOn(t, dial(), text) })

	// The connection that is watched stays encrypted for who asks, and HTTP/2 stays.
	if got := rawOn(t, dial(), "GET /admin/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.Contains(
		got, "Strict-Transport-Security") {
		t.Errorf("HTTP/1.1 over TLS is not known as such: %s", got)
	}
	a, err := client.Get("https://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.ProtoMajor != 2 || a.StatusCode != 200 {
		t.Errorf("a client that can HTTP/2 got %s %s", a.Proto, a.Status)
	}
	if got := raw(t, address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(got, "400 Bad Request") {
		t.Errorf("a client without TLS got %q", got)
	}
}

// A connection whose handshake never ends keeps nobody else waiting.
func TestASilentHandshakeDelaysNobody(t *testing.T) {
	address, dial, _ := servedByTLS(t)
	for range 20 {
		silent, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
	}
	if got := rawOn(t, dial(), "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(
		got, "HTTP/1.1 200") {
		t.Errorf("%q", got)
	}
}

// refusesTwoLengths sends over separate connections, one for each text.
func refusesTwoLengths(t *testing.T, send func(text string) string) {
	t.Helper()
	const get = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, head := range map[string]string{
		"both":           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"the other way":  "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
		"no bytes":       "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
		"folded":         "Content-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n",
		"bare line ends": "Content-Length: 5\nTransfer-Encoding: chunked\n",
		"after other words": "X-A: " + strings.Repeat("a", 6000) +
			"\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
	} {
		got := send("POST /api/v1/session HTTP/1.1\r\nHost: x\r\n" + head + "\r\n0\r\n\r\n" + get)
		if !strings.HasPrefix(got, "HTTP/1.1 400") || strings.Count(got, "HTTP/1.1 ") != 1 ||
			!strings.Contains(got, "Connection: close") {
			t.Errorf("%s: %s", name, got)
		}
	}
	// The same hidden behind a good request on the same connection.
	got := send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" +
		"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get)
	if strings.Count(got, "HTTP/1.1 200") != 1 || strings.Count(got, "HTTP/1.1 400") != 1 ||
		strings.Count(got, "HTTP/1.1 ") != 2 {
		t.Errorf("pipelined: %s", got)
	}
	body := `{"name":"admin","password":"right"}`
	for name, text := range map[string]string{
		"a chunked body": fmt.Sprintf("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
			len(body), body),
		"a plain body": fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body),
	} {
		if got := send("POST /api/v1/session HTTP/1.1\r\nHost: x\r\n" + text); !strings.HasPrefix(got, "HTTP/1.1 201") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The second request of a connection that is kept is looked at like the first,
// whatever the first was.
func TestTheSecondRequestOfAConnectionIsLookedAt(t *testing.T) {
	_, address := served(t)
	_, dial, _ := servedByTLS(t)
	bad := "POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: " +
		"chunked\r\n\r\n0\r\n\r\n"
	const body = `{"name":"admin","password":"right"}`
	for where, connect := range map[string]func() net.Conn{
		"plain": func() net.Conn {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		"TLS": dial,
	} {
		for name, first := range map[string]string{
			"without a body": "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
			"chunked": fmt.Sprintf("POST /api/v1/session HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "+
				"chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
			"with a length": fmt.Sprintf("POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s",
				len(body), body),
		} {
			c := connect()
			if _, err := io.WriteString(c, first); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, len("HTTP/1.1 2"))
			if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 2" {
				t.Fatalf("%s, first %s: %q, %v", where, name, answer, err)
			}
			if got := rawOn(t, c, bad); strings.Count(got, "HTTP/1.1 400") != 1 {
				t.Errorf("%s, first %s: %s", where, name, got)
			}
		}
	}
}
