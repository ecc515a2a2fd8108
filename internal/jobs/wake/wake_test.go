package wake

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestACallReachesEveryListenerAndNoOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	a, err := Listen(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Listen(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := Call(dir, Jobs, ""); n != 2 {
		t.Fatalf("%d heard, want 2", n)
	}
	for _, l := range []*Listener{a, b} {
		select {
		case <-l.Jobs():
		case <-l.Orders():
			t.Fatal("heard an order")
		case <-time.After(30 * time.Second):
			t.Fatal("heard nothing")
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := Call(dir, Orders, ""); n != 1 {
		t.Errorf("%d heard after one left, want 1", n)
	}
	<-a.Orders()
}

// A listener that calls hears it at once and once, as the others do.
func TestAListenerCalls(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	var queues []string
	a, err := Listen(dir, func(queue, row string) { queues = append(queues, queue+row) }, "default")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Listen(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if n := a.Call(Jobs, "default"); n != 2 {
		t.Errorf("%d heard, want 2", n)
	}
	if !slices.Equal(queues, []string{"default"}) {
		t.Errorf("the caller heard of the queues %v before the call returned", queues)
	}
	<-a.Jobs()
	<-b.Jobs()
	a.Call(Jobs, "other")
	<-b.Jobs()
	Call(dir, Orders, "") // datagrams keep their order
	<-a.Orders()
	select {
	case <-a.Jobs():
		t.Errorf("the caller heard its own call again, or that of another queue: %v", queues)
	default:
	}
}

// A call about a job may bring its row; one of another queue brings nothing.
func TestACallBringsTheRow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	heard := make(chan string, 10)
	l, err := Listen(dir, func(queue, row string) { heard <- queue + " " + row }, "default")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, about := range []string{"other\n{}", "default", "default\n{\"id\":1}\n"} { // they keep their order
		if Call(dir, Jobs, about) != 1 {
			t.Fatal("a call is lost")
		}
	}
	for _, want := range []string{"default ", "default {\"id\":1}\n"} {
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%q is not heard", want)
		}
	}
}

// A call about content may name it; each is heard once, and a flood is bounded.
func TestCallsNameContent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	l, err := Listen(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var named []string
	for i, about := range []string{"posts:1\nposts:2\n", "", "posts:2\n"} {
		Call(dir, Content, about)
		<-l.Content()
		if named = append(named, l.Named()...); i == 0 && !slices.Equal(named, []string{"posts:1", "posts:2"}) {
			t.Errorf("named %v", named)
		}
	}
	if !slices.Equal(named, []string{"posts:1", "posts:2", "posts:2"}) {
		t.Errorf("named %v", named)
	}
	for i := range 3 * mostNamed {
		l.hearContent(fmt.Sprintf("posts:%d\nposts:%d\n", i, i))
	}
	if n := len(l.Named()); n != mostNamed {
		t.Errorf("%d names are kept", n)
	}
}

func TestADeadListenersSocketIsForgotten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	l, err := Listen(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.conn.SetDeadline(time.Now()) // end hear without removing the socket, as a crash does
	l.done.Wait()
	f, err := l.conn.File()
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	l.conn.Close()
	if _, err := os.Stat(l.path); err != nil {
		t.Skip("the socket went with its listener here")
	}
	if n := Call(dir, Jobs, ""); n != 0 {
		t.Errorf("%d heard, want 0", n)
	}
	if _, err := os.Stat(l.path); !os.IsNotExist(err) {
		t.Error("the dead socket is still there")
	}
}

func TestCallingNobodyIsQuiet(t *testing.T) {
	if n := Call(filepath.Join(t.TempDir(), "none"), Jobs, ""); n != 0 {
		t.Errorf("%d heard", n)
	}
}

func TestCallsAboutOtherQueuesAreNotHeard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	l, err := Listen(dir, nil, "cmsjobs", "default")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, queue := range []string{"Default", ""} { // MySQL may take one for the other
		Call(dir, Jobs, queue)
		select {
		case <-l.Jobs():
		case <-time.After(30 * time.Second):
			t.Errorf("the call about %q was not heard", queue)
		}
	}
	Call(dir, Jobs, "php")
	Call(dir, Orders, "") // datagrams keep their order
	<-l.Orders()
	select {
	case <-l.Jobs():
		t.Error("the call about another queue was heard")
	default:
	}
}

// A caller that meets a socket before it is one does not keep its process from
// listening.
func TestListeningWhileOthersCall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				Call(dir, Jobs, "")
			}
		}
	}()
	for range 2000 {
		l, err := Listen(dir, nil)
		if err != nil {
			t.Error(err)
			break
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
}
