//go:build unix

package php_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

// TestMain lets the test's own program be a worker that does what no Laravel does:
// CHILD says what.
func TestMain(m *testing.M) {
	switch behaviour := os.Getenv("CHILD"); behaviour {
	case "":
	case "pool":
		if err := runPool(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	default:
		newChild().be(behaviour)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runPool is a service that a test kills: a pool by the environment.
func runPool() error {
	ctx := context.Background()
	db, err := database.Connect(ctx, database.ConnectOptions{DSN: os.Getenv("CHILD_DSN"), MaxConnections: 10})
	if err != nil {
		return err
	}
	source, err := sourceOn(db)
	if err != nil {
		return err
	}
	var command []string
	if err := json.Unmarshal([]byte(os.Getenv("CHILD_COMMAND")), &command); err != nil {
		return err
	}
	_ = os.Unsetenv("CHILD")
	pool, err := php.New(php.Config{Source: source, Queue: "default", Command: command, Connection: "database",
		Processes: 2, Lease: killLease, Worker: "test:child",
		StateDir: os.Getenv("CHILD_DIR"), Now: time.Now, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	return pool.Run(ctx)
}

// killLease is the lease in tests that kill: what a dead process held comes back after it.
const killLease = 10 * time.Second

// child is the worker's side of the protocol.
type child struct {
	in  *os.File
	out *os.File
	dir string
	// asked receives when it is to end; nil: it dies then.
	asked <-chan os.Signal
}

func newChild() *child {
	return &child{in: os.NewFile(3, "in"), out: os.NewFile(4, "out"), dir: os.Getenv("CHILD_DIR")}
}

func (c *child) say(message string) {
	// gone: the next read ends
	_, _ = c.out.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
}

type childsOrder struct {
	ID     int64  `json:"id"`
	GiveUp string `json:"give_up"`
	Until  int64  `json:"until"`
}

// late says whether the order came too late for its job.
func (o childsOrder) late() bool {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return o.Until != 0 && now.Nano() >= o.Until
}

func (c *child) hear() (order childsOrder) {
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		os.Exit(0)
	}
	data := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c.in, data); err != nil {
		os.Exit(0)
	}
	if err := json.Unmarshal(data, &order); err != nil {
		panic(err)
	}
	return order
}

// job asks until there is one.
func (c *child) job() (id int64, giveUp string) {
	for {
		c.say(`{"more":true}`)
		o := c.hear()
		for ; o.late(); o = c.hear() {
			c.say(fmt.Sprintf(`{"late":%d}`, o.Until))
		}
		if o.Until != 0 {
			fmt.Print(nextJob)
		}
		if o.ID != 0 {
			return o.ID, o.GiveUp
		}
		select {
		case <-c.asked:
			c.say(`{"bye":0,"job":null}`)
			os.Exit(0)
		default:
		}
	}
}

// first says whether this is the first process of the test.
func (c *child) first() bool {
	_, err := os.OpenFile(filepath.Join(c.dir, "first"), os.O_CREATE|os.O_EXCL, 0o600)
	return err == nil
}

// talk prints as a job does that goes on for long: until there is a file "end".
func (c *child) talk() {
	fmt.Println("begun")
	c.say(`{"progress":{"done":1,"total":3,"note":"password=hunter2"}}`)
	c.waitFor("more")
	c.say(`{"progress":{"done":3,"total":3}}`)
	fmt.Println("password=hunter2")
	c.waitFor("end")
	fmt.Println("done")
}

func (c *child) waitFor(file string) {
	for range 3000 {
		if _, err := os.Stat(filepath.Join(c.dir, file)); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(9)
}

func (c *child) be(behaviour string) {
	switch behaviour {
	case "old":
		c.say(`{"hello":99}`)
		time.Sleep(time.Minute)
	case "garbage":
		_, _ = c.out.WriteString("Fatal error: a program wrote here")
		time.Sleep(time.Minute)
	}
	tracked := behaviour == "take its time" || behaviour == "at once"
	if tracked { // asked to end, it ends when it has heard the answer
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, unix.SIGTERM)
		c.asked = asked
	}
	c.say(`{"hello":2}`)
	switch behaviour {
	case "silent":
		time.Sleep(time.Minute)
	case "ask once": // as a worker that is paused while it waits
		c.say(`{"more":true}`)
		c.hear()
		time.Sleep(time.Minute)
	case "long at last": // quick jobs, so that others are claimed ahead, and then one without an end
		for range 5 {
			id, _ := c.job()
			c.say(fmt.Sprintf(`{"done":{"id":%d,"as":"delete"}}`, id))
		}
		c.job()
		time.Sleep(time.Minute)
	case "die unread":
		if c.first() {
			c.say(`{"more":true}`)
			_, _ = unix.Poll([]unix.PollFd{{Fd: 3, Events: unix.POLLIN}}, 60_000)
			os.Exit(1)
		}
	case "talk":
		for {
			id, _ := c.job()
			c.talk()
			c.say(fmt.Sprintf(`{"done":{"id":%d,"as":"delete"}}`, id))
		}
	case "chatter":
		id, _ := c.job()
		for i := range 1500 {
			if i == 900 {
				c.waitFor("more")
			}
			fmt.Println("line", i)
		}
		c.waitFor("end")
		c.say(fmt.Sprintf(`{"done":{"id":%d,"as":"delete"}}`, id))
	case "final message": // dies as it speaks, and leaves a child that holds the pipes
		id, _ := c.job()
		sleep := exec.Command("sleep", "60")
		sleep.ExtraFiles = []*os.File{os.NewFile(3, "in"), c.out}
		if err := sleep.Start(); err != nil {
			panic(err)
		}
		_ = os.WriteFile(filepath.Join(c.dir, fmt.Sprint(id)), []byte(fmt.Sprint(sleep.Process.Pid)), 0o600)
		c.say(fmt.Sprintf(`{"done":{"id":%d,"as":"delete"},"bye":0,"job":null}`, id))
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case "ahead", "read late", "look late", "speak late", "die with more":
		c.aheadOf(behaviour)
	case "go on": // past its time-out, with a child
		id, _ := c.job()
		sleep := exec.Command("sleep", "60")
		if err := sleep.Start(); err != nil {
			panic(err)
		}
		_ = os.WriteFile(filepath.Join(c.dir, fmt.Sprint(id)), []byte(fmt.Sprint(sleep.Process.Pid)), 0o600)
		time.Sleep(time.Minute)
	}
	if tracked {
		_ = os.WriteFile(filepath.Join(c.dir, fmt.Sprint("pid-", os.Getpid())), nil, 0o600)
	}
	for {
		id, giveUp := c.job()
		if behaviour == "take its time" {
			time.Sleep(100 * time.Millisecond)
		}
		switch {
		case behaviour == "crash" && giveUp == "", behaviour == "crash always":
			os.Exit(7)
		case giveUp != "":
			c.say(fmt.Sprintf(`{"done":{"id":%d,"as":"fail","exception":%q}}`, id, giveUp))
		default:
			c.say(fmt.Sprintf(`{"done":{"id":%d,"as":"delete"}}`, id))
		}
	}
}
