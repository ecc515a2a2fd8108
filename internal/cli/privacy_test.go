package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestNoVisitorsAddressIsKept sends views from 500 addresses and imports a log
// of 500 others, with names that look like hosts and addresses, and searches
// the service's log, its database and a backup for each.
func TestNoVisitorsAddressIsKept(t *testing.T) {
	t.Parallel()
	flag := newDatabase(t, jobstest.SQLite, tables.Stock)
	backups := t.TempDir()
	s := startService(t, fmt.Sprintf(`schedule: {enabled: false}
analytics: {collect: true, hosts: [cms.example], mmdb: %q}
backup: {dir: %q}
`, vietnam(t), backups), flag)
	const agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
	var addresses []string
	for i := range 500 {
		address := fmt.Sprintf("127.%d.%d.%d", 70+i%7, 100+i/200, 20+i%200)
		addresses = append(addresses, address)
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
		body := `{"u":"http://cms.example/a"}`
		if i%10 == 0 {
			body = `{"u":"http://elsewhere.example/a"}` // refused
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/collect", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", agent)
		answer, err := client.Do(r)
		if err != nil {
			t.Skipf("this system has no address %s: %v", address, err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNoContent && answer.StatusCode != http.StatusForbidden {
			t.Fatalf("%s", answer.Status)
		}
	}
	addresses = append(addresses, importNames(t, s, agent)...)
	s.command("analytics", "process")
	s.command("backup", "create", "--only-database")
	s.stop()

	log := s.log()
	if strings.Count(log, `"msg":"request"`) > 100 {
		t.Errorf("%d requests are in the log", strings.Count(log, `"msg":"request"`))
	}
	path := strings.TrimPrefix(flag, "--dsn=sqlite:")
	stored := readAll(t, path, path+"-wal") + readAll(t, tree(t, backups)...)
	if !strings.Contains(stored, "cmsjobs_page_views") || !strings.Contains(stored, "cms.example") {
		t.Fatal("the search looks in the wrong files")
	}
	kept := 0
	for _, address := range addresses {
		inLog, inStore := strings.Contains(log, address+`"`) || strings.Contains(log, address+":"),
			strings.Contains(stored, address)
		if inLog || inStore {
			if kept++; kept < 5 {
				t.Errorf("%s is kept (in the log %v, in the database or a backup %v)", address, inLog, inStore)
			}
		}
	}
	if kept > 0 {
		t.Errorf("%d of %d addresses are kept", kept, len(addresses))
	}
}

// importNames imports a log whose users have chosen their names with care.
func importNames(t *testing.T, s *service, agent string) (addresses []string) {
	t.Helper()
	names := []string{"-", "John Doe", "a b c", "cms.example 203.0.113.1", "- [20/Oct/2026:10:00:00 +0000] x",
		"x] \\x22GET"}
	var log strings.Builder
	for i := range 500 {
		address := fmt.Sprintf("198.51.%d.%d", 100+i/250, i%250)
		if i%3 == 0 {
			address = fmt.Sprintf("2001:db8:%x::%x:77", 0x1000+i, 0xa00+i)
		}
		addresses = append(addresses, address)
		host := []string{"", "cms.example ", "cms.example:443 "}[i%3]
		fmt.Fprintf(&log, `%s%s - %s [%s] "GET /b HTTP/1.1" 200 1 "-" "%s"`+"\n", host, address, names[i%len(names)],
			time.Now().Format("02/Jan/2006:15:04:05 -0700"), agent)
	}
	file := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(file, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := s.command("analytics", "import", "--host", "cms.example", file); !strings.Contains(out, "500") {
		t.Fatalf("%s", out)
	}
	return addresses
}

func tree(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d files, %v", dir, len(files), err)
	}
	return files
}

func readAll(t *testing.T, files ...string) string {
	t.Helper()
	var b strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".zst") {
			unpacker, err := zstd.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if data, err = io.ReadAll(unpacker); err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(data, []byte("cmsjobs_page_views")) {
				t.Errorf("the backup has no page views in it")
			}
		}
		b.Write(data)
	}
	return b.String()
}
