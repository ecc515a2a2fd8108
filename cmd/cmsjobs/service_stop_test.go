package main

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/sqlstore"
)

// mute is a database server that takes connections and never says a word.
func mute(t *testing.T) (address string, called <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	calls := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			calls <- struct{}{}
		}
	}()
	return l.Addr().String(), calls
}

// end sends TERM and returns the exit code and what was said.
func (s *service) end() (int, string) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		s.cmd.Process.Kill()
		s.t.Error("the service does not stop")
	}
	_ = s.cmd.Wait() // its exit code is asked for
	return s.cmd.ProcessState.ExitCode(), s.log()
}

// TERM reaches a service that still waits for its database: it ends as told.
// Without TERM a database that is not there is exit code 3.
func TestTermBeforeTheDatabaseAnswersIsAnOrderlyEnd(t *testing.T) {
	for _, command := range []string{"run", "work"} {
		t.Run(command, func(t *testing.T) {
			address, called := mute(t)
			s := newService(t, "", "--dsn", "mysql://root@"+address+"/cms")
			s.cmd.Args[len(s.cmd.Args)-1] = command
			s.launch()
			<-called
			if code, log := s.end(); code != 0 || !strings.Contains(log, "told to stop before the database answered") {
				t.Errorf("exit code %d:\n%s", code, log)
			}
		})
	}
	s := newService(t, "", "--dsn", "mysql://root@127.0.0.1:1/cms", "--set", "database.start_wait=500ms")
	s.launch()
	<-s.done
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != exitDatabase {
		t.Errorf("exit code %d without TERM, want %d:\n%s", code, exitDatabase, s.log())
	}
}

// says waits until the service has logged words.
func (s *service) says(words string) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(s.log(), words); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("the service does not say %q:\n%s", words, s.log())
		}
	}
}

// A service whose database comes up after it waits for it.
func TestAServiceWaitsForItsDatabase(t *testing.T) {
	port := jobstest.MariaDB(t).Port
	db := jobstest.Open(t, jobstest.MySQL)
	if _, err := sqlstore.CreateTables(t.Context(), db.DB, sqlstore.Stock, ""); err != nil {
		t.Fatal(err)
	}
	proxy := jobstest.NewProxy(t, port)
	proxy.Refuse(true)
	s := newService(t, "", "--dsn", strings.Replace(db.DSN, fmt.Sprint(":", port), fmt.Sprint(":", proxy.Port), 1))
	s.launch()
	s.says("the database does not answer; waiting for it")
	proxy.Refuse(false)
	s.says("worker started")
	if code, log := s.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, log)
	}
}

// TERM reaches a service whose database went away after its start.
func TestTermWhileTheDatabaseIsAwayIsAnOrderlyEnd(t *testing.T) {
	port := jobstest.MariaDB(t).Port
	db := jobstest.Open(t, jobstest.MySQL)
	if _, err := sqlstore.CreateTables(t.Context(), db.DB, sqlstore.Stock, ""); err != nil {
		t.Fatal(err)
	}
	proxy := jobstest.NewProxy(t, port)
	s := startService(t, "", "--dsn", strings.Replace(db.DSN, fmt.Sprint(":", port), fmt.Sprint(":", proxy.Port), 1))
	proxy.Refuse(true)
	proxy.Cut()
	if code, log := s.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, log)
	}
}
