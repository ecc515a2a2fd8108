package cli

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A mail server that never ends its greeting: the mail's job fails by a clear
// error, the jobs beside it end well, and the process grows by little.
func TestAHostileMailServerHarmsNoOtherJob(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		block := strings.Repeat("A", 64<<10)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for range 8192 { // 512 MiB
					if _, err := io.WriteString(c, block); err != nil {
						return
					}
				}
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := startService(t, "schedule: {enabled: false}\nnotify: {mail: false}\nmail: {host: 127.0.0.1, from: "+
		"a@example.com, port: "+port+"}\n", newDatabase(t, jobstest.SQLite, tables.Stock))
	admin := bearer(s.token("admin"))
	before := s.mostResident()
	var mails, others []string
	for i := range 8 {
		var made struct{ ID string }
		s.ask(201, "POST", "/api/v1/jobs",
			fmt.Sprintf(
				`{"type":"mail.send","payload":{"to":"b%d@example.com","subject":"s","body":"b"},"max_attempts":1}`,
				i), admin, &made)
		mails = append(mails, made.ID)
		s.ask(201, "POST", "/api/v1/jobs", `{"type":"queue.clean","payload":{"dryRun":true}}`, admin, &made)
		others = append(others, made.ID)
	}
	await := func(id string, want ...string) (text string) {
		for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(
			50 * time.Millisecond) {
			_, raw := s.try("GET", "/api/v1/jobs/"+id, "", admin)
			text = string(raw)
			for _, status := range want {
				if strings.Contains(text, `"status":"`+status+`"`) {
					return text
				}
			}
		}
		t.Fatalf("%s is not %v: %s\n%s", id, want, text, s.log())
		return ""
	}
	for _, id := range others {
		await(id, "completed")
	}
	failed := await(mails[0], "failed")
	if !strings.Contains(failed, "breaks the limits") || len(failed) > 8<<10 {
		t.Errorf("the mail's job says %.2000s", failed)
	}
	if grown := s.mostResident() - before; grown > 64<<20 {
		t.Errorf("the service grew by %d MiB", grown>>20)
	}
}

// mostResident is the most resident memory that the process ever had, in bytes.
func (s *service) mostResident() int64 {
	s.t.Helper()
	peak := residentPeak(s.cmd.Process.Pid)
	if peak == 0 {
		s.t.Skip("this system does not tell the resident memory")
	}
	return peak
}
