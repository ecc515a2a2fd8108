package cli

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pours are what hostile servers say to anyone who connects. A client of PostgreSQL
// speaks first; its first bytes are read before.
var pours = map[string]func(net.Conn){
	"an endless greeting": func(c net.Conn) { pour(c, "A") },
	"an endless greeting of small packets": func(c net.Conn) {
		pour(c, "\x10\x00\x00\x00"+strings.Repeat("x", 16))
	},
	"endless notices": func(c net.Conn) { pour(c, "N\x00\x00\x00\x0aSHi\x00\x00\x00") },
	"a message that says it has a gigabyte": func(c net.Conn) {
		fmt.Fprint(c, "R\x3f\xff\xff\xf0")
		pour(c, "A")
	},
	"a packet that says it has sixteen megabytes": func(c net.Conn) {
		fmt.Fprint(c, "\xfe\xff\xff\x00")
		pour(c, "A")
	},
	"packets without end": func(c net.Conn) {
		for seq := byte(0); ; seq++ {
			if _, err := c.Write([]byte{0xff, 0xff, 0xff, seq}); err != nil {
				return
			}
			if _, err := io.CopyN(c, endless{}, 1<<24-1); err != nil {
				return
			}
		}
	},
	"a good greeting, then a large packet": func(c net.Conn) {
		fmt.Fprint(c, mysqlGreeting)
		_, _ = c.Read(make([]byte, 4096))
		fmt.Fprint(c, "\xfe\xff\xff\x02")
		pour(c, "A")
	},
	"a drip": func(c net.Conn) {
		for _, b := range []byte("\x4a\x00\x00\x00" + strings.Repeat("\x0a", 1<<10)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	},
	"nothing": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
	"another protocol": func(c net.Conn) {
		fmt.Fprint(c, "SSH-2.0-OpenSSH_9.6\r\n")
		_, _ = io.Copy(io.Discard, c)
	},
}

// mysqlGreeting is a whole greeting of protocol 10, without TLS.
const mysqlGreeting = "\x4a\x00\x00\x00\x0a8.0.36\x00\x01\x00\x00\x00AAAAAAAA\x00\xff\xf7\xff\x02\x00\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00AAAAAAAAAAAA\x00mysql_native_password\x00"

// endless reads as letters without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'A'
	}
	return len(p), nil
}

func pour(w io.Writer, piece string) {
	block := strings.Repeat(piece, max(1, (64<<10)/len(piece)))
	for sent := 0; sent < 512<<20; sent += len(block) {
		if _, err := io.WriteString(w, block); err != nil {
			return
		}
	}
}

// hostileDatabase listens, and says the same to everybody.
func hostileDatabase(t *testing.T, waits bool, say func(net.Conn)) string {
	t.Helper()
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
				if waits { // PostgreSQL's clients speak first
					_, _ = c.Read(make([]byte, 4096))
				}
				say(c)
			}()
		}
	}()
	return l.Addr().String()
}

// tries starts the service on a database, lets it try for a while after it said
// what is wrong, and returns what it said, after which time, and the most
// resident memory that it had, in bytes.
func tries(t *testing.T, dsn string) (text string, took time.Duration, resident int64) {
	t.Helper()
	s := newService(t, "", "--dsn="+dsn)
	begun := time.Now()
	s.cmd.Env = s.env
	log, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go s.listen(log, make(chan string, 1))
	defer func() {
		s.cmd.Process.Kill()
		<-s.done
		s.cmd.Wait()
	}()
	for end := begun.Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if now := residentPeak(s.cmd.Process.Pid); now > 0 { // 0 after its end
			resident = now
		}
		if said := s.log(); said != "" && text == "" {
			text, took = said, time.Since(begun)
			end = time.Now().Add(1500 * time.Millisecond) // some more tries
		}
	}
	if text == "" {
		t.Errorf("it says nothing in a minute")
	}
	return text, took, resident
}

// residentPeak is the most resident memory that a process ever had, in bytes; 0
// where that is not known. (A process's usage as its parent sees it begins with
// the parent's own.)
func residentPeak(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	line, _, _ := strings.Cut(rest, "kB")
	kib, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// A server at the database's address that never ends its greeting, that drips,
// or that lies about lengths costs little memory and a short time, and the
// service says what is wrong.
func TestAHostileDatabaseServerCostsLittle(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	_, _, before := tries(t, "mysql://u:p@"+nobody+"/cms")
	if before == 0 {
		t.Skip("this system does not tell the resident memory")
	}
	for name, say := range pours {
		for _, engine := range []string{"mysql", "postgres"} {
			t.Run(engine+"/"+name, func(t *testing.T) {
				t.Parallel() // each has its own server and service
				address := hostileDatabase(t, engine == "postgres", say)
				dsn := engine + "://u:p@" + address + "/cms"
				if engine == "postgres" {
					dsn += "?sslmode=disable"
				}
				text, took, resident := tries(t, dsn)
				if grown := resident - before; grown > 64<<20 {
					t.Errorf("it took %d MiB more than without a server", grown>>20)
				}
				if took > 50*time.Second { // the bounds are seconds; a busy machine has its own
					t.Errorf("it took %s", took)
				}
				if !strings.Contains(text, address) || len(text) > 8<<10 {
					t.Errorf("it says %.2000s", text)
				}
				t.Logf("%s, %d MiB: %.400s", took.Round(time.Millisecond), resident>>20, text)
			})
		}
	}
}
