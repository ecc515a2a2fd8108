package cache

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// hostileRedis answers the first SCAN with begin and then piece, 256 MiB of it.
func hostileRedis(t *testing.T, begin, piece string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(c net.Conn) {
		defer c.Close()
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			var n int
			if _, err := fmt.Sscanf(line, "*%d", &n); err != nil {
				return
			}
			words := make([]string, n)
			for i := range words {
				_, _ = r.ReadString('\n') // its length
				word, _ := r.ReadString('\n')
				words[i] = strings.ToLower(strings.TrimSpace(word))
			}
			switch words[0] {
			case "hello":
				fmt.Fprint(c, "-ERR unknown command\r\n")
			case "scan":
				if begin+piece == "" {
					endlessScan(c, r)
					return
				}
				fmt.Fprint(c, begin)
				block := strings.Repeat(piece, max(1, (64<<10)/len(piece)))
				for sent := 0; sent < 256<<20; sent += len(block) {
					if _, err := io.WriteString(c, block); err != nil {
						return
					}
				}
				return
			default:
				fmt.Fprint(c, "+OK\r\n")
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// endlessScan answers each SCAN with 1,000 other keys, 1,500,000 in all, as if more were
// there.
func endlessScan(c net.Conn, r *bufio.Reader) {
	for n := 0; n < 1_500_000; n += 1000 {
		var answer strings.Builder
		fmt.Fprintf(&answer, "*2\r\n$%d\r\n%d\r\n*1000\r\n", len(fmt.Sprint(n+1)), n+1)
		for i := range 1000 {
			fmt.Fprintf(&answer, "$60\r\ncache_%054d\r\n", n+i)
		}
		if _, err := io.WriteString(c, answer.String()); err != nil {
			return
		}
		line, err := r.ReadString('\n') // the next SCAN
		var words int
		if _, scanErr := fmt.Sscanf(line, "*%d", &words); err != nil || scanErr != nil {
			return
		}
		for range 2 * words {
			_, _ = r.ReadString('\n')
		}
	}
	fmt.Fprint(c, "*2\r\n$1\r\n0\r\n*0\r\n")
}

// TestTheConfiguredRedisIsBoundedToo: the server that our own configuration names, not the
// CMS's, is read within the same bounds, also by a dry-run whose server never ends.
func TestTheConfiguredRedisIsBoundedToo(t *testing.T) {
	for name, c := range map[string]struct{ begin, piece, payload string }{
		"an endless line":          {"+", "a", ``},
		"a string of 2 GiB":        {"*2\r\n$2147483647\r\n", "a", ``},
		"a dry-run without an end": {"", "", `{"dryRun":true}`},
	} {
		port := hostileRedis(t, c.begin, c.piece)
		h := newLaravelSite(t, jobstest.SQLite, cms.Env{"CACHE_STORE": "redis", "CACHE_PREFIX": "cache_"})
		h.Redis = &redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port)}
		var r Report
		grown := jobstest.ResidentGrowth(t, func() { r, _ = h.run("cache.clear", c.payload) })
		if grown > 64<<20 {
			t.Errorf("%s: the memory grew by %d MiB", name, grown>>20)
		}
		if c.piece != "" && r.Failures == 0 {
			t.Errorf("%s: %.600v", name, fmt.Sprint(r))
		}
	}
}

// TestADrippingRedisEnds has a server that sends its answer byte by byte: each byte is
// in time, the answer as a whole is not.
func TestADrippingRedisEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for t.Context().Err() == nil {
					if _, err := c.Write([]byte("+")); err != nil {
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
			}()
		}
	}()
	// Deadlines of the client's own that never come, as a REDIS_URL can set them.
	c := boundedFor(&redis.Options{Addr: l.Addr().String(), ReadTimeout: -1, WriteTimeout: -1, MaxRetries: -1},
		300*time.Millisecond)
	defer c.Close()
	done := make(chan error, 1)
	go func() { done <- c.Ping(context.Background()).Err() }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the answer is taken")
		}
	case <-time.After(20 * time.Second): // the client's context ends no reading
		t.Error("the answer never ends")
	}
}

func TestHostileRedisServersCostLittle(t *testing.T) {
	for name, say := range map[string][2]string{
		"an endless line":     {"+", "a"},
		"an endless error":    {"-ERR ", "a"},
		"a string of 2 GiB":   {"*2\r\n$2147483647\r\n", "a"},
		"a length beyond all": {"*2\r\n$9999999999999\r\n", "a"},
		"a list of 2 billion": {"*2\r\n$1\r\n0\r\n*2147483647\r\n", "$1\r\na\r\n"},
		"endless keys": {"*2\r\n$1\r\n0\r\n*200000\r\n", "$60\r\n" + strings.Repeat("k", 60) +
			"\r\n"},
		"lists in lists":                 {"", "*1\r\n"},
		"lists that only announce":       {"", "*100000\r\n"},
		"attributes without an end":      {"", "|1\r\n+a\r\n+b\r\n"},
		"a length after an empty string": {"*2\r\n$0\r\n\r\n$2147483647\r\n", "a"},
	} {
		port := hostileRedis(t, say[0], say[1])
		h := newLaravelSite(t, jobstest.SQLite, cms.Env{"CACHE_STORE": "redis", "REDIS_PORT": fmt.Sprint(port),
			"CACHE_PREFIX": "cache_"})
		var r Report
		grown := jobstest.ResidentGrowth(t, func() { r, _ = h.run("cache.clear", ``) })
		if grown > 64<<20 {
			t.Errorf("%s: the memory grew by %d MiB", name, grown>>20)
		}
		if r.Failures == 0 || len(fmt.Sprint(r.NotRemoved)) > 2000 {
			t.Errorf("%s: %.600v", name, fmt.Sprint(r))
		}
	}
}
