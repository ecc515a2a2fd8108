package wake

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Message is what a caller has to say.
type Message byte

// The messages.
const (
	Jobs    Message = 'j' // jobs were enqueued
	Orders  Message = 'o' // somebody paused, cancelled, stopped
	Content Message = 'c' // the CMS's content may have changed
	Watched Message = 'w' // a feed works that reports each change of content
)

// Longest bounds a message: its letter, the name of a queue, which the tables bound by
// 255 letters, and maybe a row.
const Longest = 8 << 10

// Dir is the folder where the workers of one database listen on this host.
// identity names the database (host, port and name, never a password).
func Dir(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return filepath.Join(os.TempDir(), fmt.Sprintf("cmsjobs-%d", os.Getuid()), hex.EncodeToString(sum[:8]))
}

// Listener hears calls.
type Listener struct {
	jobs, orders     chan struct{}
	content, watched chan struct{}
	arrived          func(queue, row string)
	queues           []string
	named            []string // what calls about content named; guarded by mu
	mu               sync.Mutex
	conn             *net.UnixConn
	path             string
	done             sync.WaitGroup
}

// Listen opens a socket in dir. Several listeners may be there at once. Calls
// about the jobs of other queues than these are not heard; without queues, all
// are. arrived, if it is not nil, gets the queue of each call about jobs before
// Jobs receives, "" for any queue, and the row of the job where the call has one; it must
// be quick.
func Listen(dir string, arrived func(queue, row string), queues ...string) (*Listener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for wake-ups: %w", err)
	}
	f, err := os.CreateTemp(dir, "*.sock")
	if err != nil {
		return nil, fmt.Errorf("naming a socket for wake-ups: %w", err)
	}
	path := f.Name()
	err = errors.Join(f.Close(), removeQuietly(path)) // a caller may have taken it for a dead listener's
	if err != nil {
		return nil, fmt.Errorf("naming a socket for wake-ups: %w", err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listening for wake-ups: %w", err)
	}
	l := &Listener{jobs: make(chan struct{}, 1), orders: make(chan struct{}, 1),
		content: make(chan struct{}, 1), watched: make(chan struct{}, 1), queues: queues, conn: conn, path: path,
		arrived: arrived}
	l.done.Go(l.hear)
	return l, nil
}

// Jobs receives when jobs were enqueued; several calls may come as one.
func (l *Listener) Jobs() <-chan struct{} { return l.jobs }

// Orders receives when people gave orders; several calls may come as one.
func (l *Listener) Orders() <-chan struct{} { return l.orders }

// Content receives when the CMS's content may have changed; several calls may come
// as one.
func (l *Listener) Content() <-chan struct{} { return l.content }

// Named takes what the calls about content have named since it was last asked: the first
// of it, as there may be much.
func (l *Listener) Named() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	named := l.named
	l.named = nil
	return named
}

// Watched receives while somebody will tell of each change of content.
func (l *Listener) Watched() <-chan struct{} { return l.watched }

// Close stops listening and removes the socket.
func (l *Listener) Close() error {
	err := l.conn.Close()
	l.done.Wait()
	return errors.Join(err, removeQuietly(l.path))
}

func (l *Listener) hear() {
	buffer := make([]byte, Longest)
	for {
		n, err := l.conn.Read(buffer)
		if err != nil {
			return // closed
		}
		if n > 0 {
			l.take(Message(buffer[0]), string(buffer[1:n]))
		}
	}
}

// take passes a message on.
func (l *Listener) take(m Message, about string) {
	switch m {
	case Orders:
		notify(l.orders)
	case Content:
		l.hearContent(about)
	case Watched:
		notify(l.watched)
	default:
		l.hearJobs(about)
	}
}

// Call tells every listener in l's folder as the function Call does, and l itself first,
// without the way through its socket.
func (l *Listener) Call(m Message, about string) int {
	l.take(m, about)
	return 1 + call(filepath.Dir(l.path), m, about, l.path)
}

// mostNamed bounds what is kept of what calls about content name.
const mostNamed = 100

// hearContent hears that content changed, and maybe which: a line each.
func (l *Listener) hearContent(about string) {
	l.mu.Lock()
	for name := range strings.Lines(about) {
		name = strings.TrimSuffix(name, "\n")
		if len(l.named) < mostNamed && !slices.Contains(l.named, name) {
			l.named = append(l.named, name)
		}
	}
	l.mu.Unlock()
	notify(l.content)
}

// hearJobs hears that a queue has jobs, and maybe the row of one in the next line.
func (l *Listener) hearJobs(about string) {
	queue, row, _ := strings.Cut(about, "\n")
	if !l.listensTo(queue) {
		return
	}
	if l.arrived != nil {
		l.arrived(queue, row)
	}
	notify(l.jobs)
}

// listensTo says whether jobs of a queue concern the listener; "" is any queue.
// Databases may take "A" for "a": rather too many calls are heard than too few.
func (l *Listener) listensTo(queue string) bool {
	return queue == "" || len(l.queues) == 0 ||
		slices.ContainsFunc(l.queues, func(ours string) bool { return strings.EqualFold(ours, queue) })
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Call tells every listener in dir, and forgets those that died. about is the queue of
// the jobs, "" for any, and maybe the row of one in the next line; or lines that name
// content. It reports how many it reached.
func Call(dir string, m Message, about string) int { return call(dir, m, about, "") }

// call leaves one socket out.
func call(dir string, m Message, about, without string) int {
	datagram := append([]byte{byte(m)}, about...)
	datagram = datagram[:min(len(datagram), Longest)]
	sockets, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	if err != nil {
		return 0 // only a malformed pattern: dir is ours
	}
	heard := 0
	for _, path := range sockets {
		if path == without {
			continue
		}
		err := send(path, datagram)
		if errors.Is(err, syscall.EMSGSIZE) { // macOS takes 2 KiB: the queue without its row
			short, _, _ := bytes.Cut(datagram, []byte{'\n'})
			err = send(path, short)
		}
		if err == nil {
			heard++
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = removeQuietly(path) // somebody else's removal is as good
		}
	}
	return heard
}

func send(path string, datagram []byte) error {
	syscall.ForkLock.RLock() // macOS has no SOCK_CLOEXEC
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return err
	}
	return syscall.Sendto(fd, datagram, 0, &syscall.SockaddrUnix{Name: path})
}

func removeQuietly(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
