package cli

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestHostileServersHarmNoOtherJob has one server behind all addresses that the
// configuration names: mail, the mailbox of reports, Redis, a bucket, an address
// to call, a webhook's subscriber, the collector of traces. It sends letters
// without end to everybody. The jobs fail by clear errors, the jobs beside them
// end well, and the process grows by little.
func TestHostileServersHarmNoOtherJob(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var asked atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			go func() {
				defer c.Close()
				pour(c, "A")
			}()
		}
	}()
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	s := startService(t, strings.NewReplacer("ADDRESS", address, "PORT", port).Replace(hostileConfig),
		newDatabase(t, jobstest.SQLite, tables.Stock))
	admin := bearer(s.token("admin"))
	before := s.mostResident()
	s.ask(201, "POST", "/api/v1/webhooks", `{"url":"http://`+address+`/","events":["job.failed"]}`, admin, nil)
	enqueue := func(request string) string {
		var made struct{ ID string }
		s.ask(201, "POST", "/api/v1/jobs", request, admin, &made)
		return made.ID
	}
	hostile, others := map[string]string{}, []string{}
	for jobType, payload := range map[string]string{"mail.send": `{"to":"b@example.com","subject":"s","body":"b"}`,
		"mail.bounces": `{}`, "cache.clear": `{}`, "http.call": `{"name":"there"}`,
		"backup.generate": `{"includeFiles":false}`} {
		hostile[jobType] = enqueue(fmt.Sprintf(`{"type":%q,"payload":%s,"max_attempts":1}`, jobType, payload))
		others = append(others, enqueue(`{"type":"queue.clean","payload":{"dryRun":true}}`))
	}
	for _, id := range others {
		if job := s.awaitEnd(id, admin); job.Status != "completed" {
			t.Errorf("a job beside them is %s: %s", job.Status, job.Error)
		}
	}
	for jobType, id := range hostile {
		job := s.awaitEnd(id, admin)
		t.Logf("%s: %.300s %.300s", jobType, job.Error, job.Result)
		if jobType == "cache.clear" { // it names what it could not clear
			job.Status, job.Error = "failed", string(job.Result)
		}
		if job.Status != "failed" || len(job.Error) > 4<<10 || strings.Contains(job.Error, "panic") ||
			!regexp.MustCompile("breaks the limits|exceeded|before it was asked").MatchString(job.Error) {
			t.Errorf("%s is %s: %.2000s", jobType, job.Status, job.Error)
		}
	}
	s.awaitDelivery(admin)
	if grown := s.mostResident() - before; grown > 64<<20 {
		t.Errorf("the service grew by %d MiB", grown>>20)
	}
	t.Logf("%d connections, %d MiB more", asked.Load(), (s.mostResident()-before)>>20)
}

// hostileConfig names one server for everything.
const hostileConfig = `schedule: {enabled: false}
notify: {mail: false}
mail: {host: 127.0.0.1, port: PORT, from: a@example.com, mailbox: {host: 127.0.0.1, port: PORT, username: u,
  password: p, encryption: none}}
storage: {s3: {bucket: b, endpoint: "http://ADDRESS", path_style: true, access_key: k, secret_key: s}}
backup: {to: [s3]}
cache: {driver: redis, prefix: cache_, redis: {address: "ADDRESS"}}
external: {allow_private: [127.0.0.0/8], calls: {there: {url: "http://ADDRESS/"}}}
webhook: {allow_http: true, allow_private: [127.0.0.0/8]}
telemetry: {traces: "http://ADDRESS/v1/traces"}
`

// awaitDelivery waits until a delivery to a subscriber has failed once.
func (s *service) awaitDelivery(who http.Header) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, text := s.try("GET", "/api/v1/webhooks/1/deliveries", "", who); strings.Contains(string(text), "exceeded") {
			return
		} else if time.Now().After(deadline) {
			s.t.Fatalf("nothing was delivered: %s", text)
		}
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
