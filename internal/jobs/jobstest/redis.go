package jobstest

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"
)

var redis once

// Redis returns the test process's Redis server, started on first use. All
// tests share it: use keys or a database number of your own.
func Redis(t testing.TB) *Server {
	t.Helper()
	return redis.start(t, "Redis", newRedis)
}

func newRedis() (*Server, error) {
	daemon, err := program("redis-server", "valkey-server")
	if err != nil {
		return nil, err
	}
	dir, err := privateDir("redis", nil)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, Dir: dir}
	s.args = []string{daemon, "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir}
	s.ready = func() error {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			return err
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err == nil && line != "+PONG\r\n" {
			err = fmt.Errorf("redis says %q", line)
		}
		return err
	}
	return s, nil
}
