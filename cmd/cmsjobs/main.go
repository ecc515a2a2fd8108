package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/cmsjobs/cmsjobs/config"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version = "dev"

func main() {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	a := &app{
		self: self,
		out:  os.Stdout, err: os.Stderr, in: os.Stdin,
		environ:  config.Environment(),
		now:      time.Now,
		terminal: term.IsTerminal(int(os.Stdout.Fd())),
		attended: term.IsTerminal(int(os.Stderr.Fd())),
	}
	os.Exit(a.run(os.Args[1:]))
}

// app is one call of the program: its words, its streams, its clock.
type app struct {
	// self is the program's own file, for processes of its own; "" is none.
	self     string
	out, err io.Writer
	in       io.Reader
	environ  []string
	now      func() time.Time
	terminal bool // out is one: tables may have colours
	attended bool // err is one: somebody watches, progress may move

	global struct {
		file, cms, dsn, logLevel string
		set                      []string
		json                     bool
	}
	strict bool // --strict of doctor
	dry    bool // --dry-run of the command that has one
	// again is called at the second signal: stop without grace.
	again atomic.Pointer[func()]
}

// run executes one command and returns the exit code. The first TERM, INT or
// HUP ends the command's context; the second one calls again.
func (a *app) run(args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	finished := make(chan struct{})
	defer close(finished)
	go a.obey(signals, cancel, finished)

	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(a.err, "cmsjobs:", err)
	}
	return exitCode(err)
}

func (a *app) obey(signals <-chan os.Signal, cancel func(), finished <-chan struct{}) {
	for n := 1; ; n++ {
		select {
		case <-finished:
			return
		case <-signals:
		}
		switch {
		case n == 1:
			cancel()
		case n == 2 && a.again.Load() != nil:
			(*a.again.Load())()
		default:
			os.Exit(130) // a third signal, or a command that does not listen
		}
	}
}
