//go:build unix

package sitemap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	xmlsitemap "github.com/snabb/sitemap"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap/rootfile"
)

// BenchmarkWriter writes a million addresses that are made in memory into
// files, with nothing of a database: ours (fsynced as in a run), snabb/sitemap without
// and with fsync
// and, with CMSJOBS_PEER as BenchmarkMillion has it, npm's sitemap. The metric
// is processor time, of this process or of node:
//
//	CMSJOBS_PEER=/tmp/peer go test -run '^$' -bench Writer -benchtime 1x ./internal/handlers/sitemap
func BenchmarkWriter(b *testing.B) {
	const urls = 1_000_000
	made := make([]entry, 1000) // before the writers are measured, and used again and again
	for i := range made {
		made[i] = sample(i)
	}
	// removed at the end of all: ext4 is slow at new files where many were just removed
	peer, kept := os.Getenv("CMSJOBS_PEER"), b.TempDir()
	for _, perFile := range []int{1000, 50_000} {
		for _, w := range []struct {
			name  string
			who   int
			write func(b *testing.B, made []entry, folder string, urls, perFile int)
		}{{"cmsjobs", syscall.RUSAGE_SELF, writeOurs}, {"snabb", syscall.RUSAGE_SELF, writeSnabb},
			{"snabb-fsynced", syscall.RUSAGE_SELF, writeSnabbFsynced}, {"npm-sitemap", syscall.RUSAGE_CHILDREN, writeNPM}} {
			if w.who == syscall.RUSAGE_CHILDREN && peer == "" {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", w.name, perFile), func(b *testing.B) {
				start := processorTime(b, w.who)
				for b.Loop() {
					folder, err := os.MkdirTemp(kept, "")
					if err != nil {
						b.Fatal(err)
					}
					w.write(b, made, folder, urls, perFile)
				}
				b.ReportMetric((processorTime(b, w.who)-start).Seconds()/float64(b.N), "cpu-s/op")
			})
		}
	}
}

func writeOurs(b *testing.B, made []entry, folder string, urls, perFile int) {
	stage, err := os.OpenRoot(folder)
	if err != nil {
		b.Fatal(err)
	}
	defer stage.Close()
	p := &plan{perFile: perFile, links: &cms.Permalinks{Root: "https://cms.example"}}
	w := &builder{plan: p, stage: stage, seal: newSealer(stage), seen: func(int) {},
		texts: make([]rootfile.Section, 1)}
	for i := range urls {
		if err := w.add(&made[i%len(made)]); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.finish(&group{file: "posts"}); err != nil {
		b.Fatal(err)
	}
	if err := w.seal.done(); err != nil || len(w.files) != urls/perFile {
		b.Fatalf("%d files, %v", len(w.files), err)
	}
}

func writeSnabb(b *testing.B, made []entry, folder string, urls, perFile int) {
	writeBySnabb(b, made, folder, urls, perFile, func(*os.File) error { return nil })
}

// writeSnabbFsynced is as durable as ours.
func writeSnabbFsynced(b *testing.B, made []entry, folder string, urls, perFile int) {
	writeBySnabb(b, made, folder, urls, perFile, (*os.File).Sync)
}

func writeBySnabb(b *testing.B, made []entry, folder string, urls, perFile int, seal func(*os.File) error) {
	for from := 0; from < urls; from += perFile {
		set := xmlsitemap.New()
		set.Minify = true
		for i := range perFile {
			e := &made[(from+i)%len(made)]
			set.Add(&xmlsitemap.URL{Loc: e.loc, LastMod: &e.modified, ChangeFreq: xmlsitemap.Daily, Priority: 0.7})
		}
		f, err := os.Create(filepath.Join(folder, strconv.Itoa(from)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := set.WriteTo(f); err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(seal(f), f.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

func writeNPM(b *testing.B, _ []entry, folder string, urls, perFile int) {
	script, err := filepath.Abs(filepath.Join("testdata", "peer_writer.cjs"))
	if err != nil {
		b.Fatal(err)
	}
	node := exec.Command("node", script, strconv.Itoa(urls), strconv.Itoa(perFile), folder)
	node.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(os.Getenv("CMSJOBS_PEER"), "node_modules"))
	if out, err := node.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

func processorTime(b *testing.B, who int) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
