package mail

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// mostGrowth is what a hostile server may cost in resident memory.
const mostGrowth = 64 << 20

// flood is how much a hostile server sends at most: enough to be seen, should a
// bound be missing, and not enough to hurt the machine.
const flood = 256 << 20

// hostile serves each connection by serve and returns its port.
func hostile(t *testing.T, serve func(c net.Conn, r *bufio.Reader)) int {
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
				serve(c, bufio.NewReader(c))
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func pour(c io.Writer, piece string) {
	block := strings.Repeat(piece, max(1, (64<<10)/len(piece)))
	for sent := 0; sent < flood; sent += len(block) {
		if _, err := io.WriteString(c, block); err != nil {
			return
		}
	}
}

// greet speaks SMTP up to the command that pours.
func greet(until, with string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		fmt.Fprint(c, "220 hostile\r\n")
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, until) {
				pour(c, with)
				return
			}
			switch line[:4] {
			case "DATA":
				fmt.Fprint(c, "354 go on\r\n")
				for err == nil && line != ".\r\n" {
					line, err = r.ReadString('\n')
				}
				if until == "." {
					pour(c, with)
					return
				}
			}
			fmt.Fprint(c, "250 ok\r\n")
		}
	}
}

func TestHostileSMTPServersCostLittle(t *testing.T) {
	for name, serve := range map[string]func(net.Conn, *bufio.Reader){
		"an endless banner": func(c net.Conn, _ *bufio.Reader) { pour(c, "A") },
		"endless lines of a banner": func(c net.Conn, _ *bufio.Reader) {
			pour(c, "220-"+strings.Repeat("A", 500)+"\r\n")
		},
		"an endless answer to EHLO":     greet("EHLO", "250-"+strings.Repeat("B", 500)+"\r\n"),
		"an endless line to MAIL":       greet("MAIL", "250 "+strings.Repeat("C", 500)),
		"an endless refusal of RCPT":    greet("RCPT", "550-"+strings.Repeat("D", 500)+"\r\n"),
		"an endless answer to the mail": greet(".", "250-"+strings.Repeat("E", 10)+"\r\n"),
	} {
		c := config(t, nil, jobstest.SQLite)
		c.Transport.Port, c.Transport.TLS, c.Transport.Username = hostile(t, serve), TLSNone, ""
		h := handler(t, c)
		var err error
		grown := jobstest.ResidentGrowth(t, func() {
			_, err = run(t, h, "hostile", 1, map[string]any{"to": "a@b.example", "subject": "s", "body": "b"})
		})
		if grown > mostGrowth {
			t.Errorf("%s: the memory grew by %d MiB", name, grown>>20)
		}
		want := outbound.ErrUnbounded.Error()
		if name == "an endless answer to the mail" {
			want = "whether" // it got the mail: it may have been delivered
		}
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 4*maxAnswer {
			t.Errorf("%s: the error is %.600v", name, err)
		}
	}
}

func TestAGreetingIsBounded(t *testing.T) {
	c := config(t, nil, jobstest.SQLite)
	h := handler(t, c)
	server := Transport{Driver: DriverSMTP, Host: "127.0.0.1", TLS: TLSNone,
		Port: hostile(t, func(c net.Conn, _ *bufio.Reader) { pour(c, "A") })}
	if err := h.Greet(t.Context(), server); !errors.Is(err, outbound.ErrUnbounded) {
		t.Errorf("an endless greeting: %v", err)
	}
	server.Port = hostile(t, func(c net.Conn, r *bufio.Reader) {
		fmt.Fprint(c, "220 hello\r\n")
		for {
			if _, err := r.ReadString('\n'); err != nil {
				return
			}
			fmt.Fprint(c, "221 bye\r\n")
		}
	})
	if err := h.Greet(t.Context(), server); err != nil {
		t.Errorf("a good greeting: %v", err)
	}
}

// A refusal just below the limits is an answer, but its words are cut.
func TestAServersWordsAreCut(t *testing.T) {
	c := config(t, nil, jobstest.SQLite)
	c.Transport.TLS, c.Transport.Username = TLSNone, ""
	c.Transport.Port = hostile(t, func(c net.Conn, _ *bufio.Reader) {
		fmt.Fprintf(c, "554-%s\r\n554 %s\r\n", strings.Repeat("X", 60_000), strings.Repeat("Y", 60_000))
	})
	_, err := run(t, handler(t, c), "long", 1, map[string]any{"to": "a@b.example", "subject": "s", "body": "b"})
	if err == nil || !strings.Contains(err.Error(), "XXX") || len(err.Error()) > 4*maxAnswer {
		t.Errorf("the error has %d bytes: %.300v", len(fmt.Sprint(err)), err)
	}
}

// imapServer answers each command by what answer says; "" is OK.
func imapServer(greeting string, answer func(c net.Conn, tag, command string) bool) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		fmt.Fprint(c, greeting)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			tag, command, _ := strings.Cut(strings.TrimSpace(line), " ")
			if answer(c, tag, command) {
				return
			}
			switch {
			case strings.HasPrefix(command, "CAPABILITY"):
				fmt.Fprint(c, "* CAPABILITY IMAP4rev1\r\n")
			case strings.HasPrefix(command, "SELECT"):
				fmt.Fprint(c, "* 3 EXISTS\r\n* OK [PERMANENTFLAGS (\\Seen \\*)] ok\r\n")
			case strings.HasPrefix(command, "UID SEARCH"):
				fmt.Fprint(c, "* SEARCH 1\r\n")
			}
			fmt.Fprintf(c, "%s OK done\r\n", tag)
		}
	}
}

// on pours with when a command begins with begin.
func on(begin, first, with string) func(net.Conn, *bufio.Reader) {
	return imapServer("* OK hostile\r\n", func(c net.Conn, _, command string) bool {
		if strings.HasPrefix(command, begin) {
			fmt.Fprint(c, first)
			pour(c, with)
			return true
		}
		return false
	})
}

func TestHostileIMAPServersCostLittle(t *testing.T) {
	for name, serve := range map[string]func(net.Conn, *bufio.Reader){
		"an endless greeting":           func(c net.Conn, _ *bufio.Reader) { fmt.Fprint(c, "* OK "); pour(c, "a") },
		"an endless greeting at once":   func(c net.Conn, _ *bufio.Reader) { pour(c, "a") },
		"endless capabilities":          on("CAPABILITY", "* CAPABILITY", " A"),
		"a long word":                   on("LOGIN", "* LIST ", "x"),
		"lists in lists":                on("SELECT", "* FLAGS ", "("),
		"lists in lists, over literals": on("SELECT", "* FLAGS ", "({0}\r\n"),
		"endless lines":                 on("SELECT", "", "* 1 EXISTS\r\n"),
		"an endless search":             on("UID SEARCH", "* SEARCH", " 1"),
		"a literal of 4 GiB":            on("UID FETCH", "* 1 FETCH (UID 1 BODY[] {4294967295}\r\n", "m"),
		"a literal with zeros before": on("UID FETCH", "* 1 FETCH (UID 1 BODY[] {"+strings.Repeat("0", 200)+
			"4294967295}\r\n", "m"),
		"messages nobody asked for": on("UID FETCH", "", "* 1 FETCH (UID 1 FLAGS (a))\r\n"),
		"many literals": on("UID FETCH", "* 1 FETCH (UID 1", " BODY[] {65536}\r\n"+
			strings.Repeat("m", 65536)),
	} {
		c := config(t, nil, jobstest.SQLite)
		c.CommandTimeout = 3 * time.Minute // a bound must end it, not this
		c.Mailbox = Mailbox{Host: "127.0.0.1", Port: hostile(t, serve), Username: "u", Password: "p", TLS: TLSNone}
		h := handler(t, c)
		var err error
		grown := jobstest.ResidentGrowth(t, func() { _, err = readMailbox(t, h) })
		if grown > mostGrowth {
			t.Errorf("%s: the memory grew by %d MiB", name, grown>>20)
		}
		if !errors.Is(err, outbound.ErrUnbounded) || len(err.Error()) > 4*maxAnswer {
			t.Errorf("%s: the error is %.300v", name, err)
		}
	}
}

// A server that sends its answers byte by byte, each in time, ends with the time
// for an answer as a whole.
func TestDrippingMailServersEnd(t *testing.T) {
	drip := func(c net.Conn, _ *bufio.Reader) {
		for begin := "220-* OK "; t.Context().Err() == nil; begin += "a" {
			if _, err := c.Write([]byte(begin[len(begin)-1:])); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	for name, try := range map[string]func(Config) error{
		"SMTP": func(c Config) error {
			_, err := run(t, handler(t, c), "drip", 1, map[string]any{"to": "a@b.example", "subject": "s", "body": "b"})
			return err
		},
		"IMAP": func(c Config) error { _, err := readMailbox(t, handler(t, c)); return err },
	} {
		c := config(t, nil, jobstest.SQLite)
		c.CommandTimeout, c.AnswerTimeout = 500*time.Millisecond, 500*time.Millisecond
		port := hostile(t, drip)
		c.Transport.Port, c.Transport.TLS, c.Transport.Username = port, TLSNone, ""
		c.Mailbox = Mailbox{Host: "127.0.0.1", Port: port, Username: "u", Password: "p", TLS: TLSNone}
		ended := make(chan error, 1)
		go func() { ended <- try(c) }()
		select {
		case err := <-ended:
			if err == nil || len(err.Error()) > 4*maxAnswer {
				t.Errorf("%s: %.300v", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: a drip never ends", name)
		}
	}
}

// Other clients change flags: such news must not stop the reader.
func TestNewsBesideAFetchIsNoHindrance(t *testing.T) {
	message := "Subject: hello\r\n\r\nno report\r\n"
	serve := imapServer("* OK hello\r\n", func(c net.Conn, _, command string) bool {
		if strings.HasPrefix(command, "UID FETCH") {
			fmt.Fprintf(c, "* 1 FETCH (UID 1 FLAGS (\\Seen))\r\n* 1 FETCH (UID 1 FLAGS ())\r\n* 1 FETCH (UID 1 "+
				"BODY[] {%d}\r\n%s)\r\n* 1 FETCH (UID 1 FLAGS ())\r\n", len(message), message)
		}
		return false
	})
	c := config(t, nil, jobstest.SQLite)
	c.Mailbox = Mailbox{Host: "127.0.0.1", Port: hostile(t, serve), Username: "u", Password: "p", TLS: TLSNone}
	if r, err := readMailbox(t, handler(t, c)); err != nil || r.Others != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBoundsOfIMAPLetGoodMailPass(t *testing.T) {
	b := new(imapBounds)
	long := strings.Repeat("(", 200_000) // in a message all is allowed
	for _, piece := range []string{"* 1 FETCH (UID 1 BODY[] {", fmt.Sprintf("%d}", len(long)), "\r", "\n",
		long[:70_000], long[70_000:], " FLAGS (a))\r\n", "a1 OK {5} done\r\n",
		"* SEARCH" + strings.Repeat(" 1234567", 100_000) + "\r\n"} {
		if err := b.inspect([]byte(piece)); err != nil {
			t.Fatalf("%.40q: %v", piece, err)
		}
	}
	if err := b.inspect([]byte(fmt.Sprintf("* 1 FETCH (BODY[] {%d}\r\n", maxReport+1))); !errors.Is(err,
		outbound.ErrUnbounded) {
		t.Errorf("a literal above the bound: %v", err)
	}
}
