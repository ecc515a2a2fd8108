package repository

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// child is the variable that makes this test's program a process to kill: what it
// does, the repository, the site, and the backups to forget or the folder to restore
// into.
const child = "CMSJOBS_TEST_REPOSITORY"

// childKey is the variable with the age identity of the process.
const childKey = "CMSJOBS_TEST_REPOSITORY_KEY"

func TestMain(m *testing.M) {
	if args := os.Getenv(child); args != "" {
		if err := runChild(strings.Split(args, "|")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if text, err := os.ReadFile("/proc/self/status"); err == nil {
			fmt.Print(string(text)) // with what the process took at most
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runChild(args []string) error {
	store, err := storage.NewLocal(args[1], storage.LocalOptions{})
	if err != nil {
		return err
	}
	o := options(store)
	o.Grace, o.Workers = -1, 0
	if key := os.Getenv(childKey); key != "" {
		i, err := age.ParseX25519Identity(key)
		if err != nil {
			return err
		}
		o.Recipients, o.Identities = []age.Recipient{i.Recipient()}, []age.Identity{i}
	}
	r, err := Open(context.Background(), o)
	if err != nil {
		return err
	}
	if args[0] == "restore" {
		b, err := r.Find(context.Background(), "")
		if err == nil {
			_, err = r.Restore(context.Background(), RestoreRequest{Backup: b, Into: args[3]})
		}
		return err
	}
	if args[0] == forCollect {
		_, err := r.Collect(context.Background(), CollectRequest{Forget: args[3:]})
		return err
	}
	f, err := NewFolder(args[2])
	if err != nil {
		return err
	}
	_, err = r.Backup(context.Background(), Request{Sources: []Labelled{{"media", f}}})
	return err
}

// victim is a repository whose processes are killed.
type victim struct {
	*testing.T
	r       *Repository
	site    *site
	rand    *rand.Rand
	shots   map[string]map[string]string // by backup
	took    map[string]time.Duration     // what a process that is not killed takes
	killed  map[string]int
	written int // files that were changed
}

// run starts a process and kills it at a random moment, or not at all.
func (v *victim) run(kill bool, args ...string) {
	v.Helper()
	passTime(v, v.r.Place()) // those that were killed before do not hold this one up
	exe, err := os.Executable()
	if err != nil {
		v.Fatal(err)
	}
	cmd := exec.CommandContext(v.Context(), exe)
	args = append([]string{args[0], v.r.Place(), v.site.dir}, args[1:]...)
	cmd.Env = append(os.Environ(), child+"="+strings.Join(args, "|"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	if kill {
		after := time.Duration(v.rand.Int64N(int64(v.took[args[0]]) * 11 / 10))
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // it may have ended
		defer timer.Stop()
	}
	err = cmd.Wait()
	switch {
	case err == nil && !kill:
		v.took[args[0]] = time.Since(begun)
	case err != nil && (!kill || cmd.ProcessState.ExitCode() >= 0):
		v.Fatalf("%s: %v\n%s", args[0], err, out.String())
	case err != nil:
		v.killed[args[0]]++
	}
}

// ids are the backups there are. Those that are new hold what the site holds now.
func (v *victim) ids() []string {
	v.Helper()
	ids, err := v.r.List(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	for _, id := range ids {
		if v.shots[id] == nil {
			v.shots[id] = shot(v, v.site.dir)
		}
	}
	return ids
}

func (v *victim) change() {
	v.Helper()
	for range 12 {
		v.written++
		v.site.write(v, fmt.Sprintf("uploads/2026/%02d/more-%d", v.written%5, v.written%40),
			v.site.noise(200+v.written*37%9000))
	}
	v.site.write(v, "large/changing", v.site.noise(smallFile*3))
}

// check reads every backup, and restores one.
func (v *victim) check(ids []string) {
	v.Helper()
	passTime(v, v.r.Place())
	seen := verify(v, v.r, VerifyRequest{Level: Contents})
	if len(seen.Problems) != 0 || seen.Backups != len(ids) {
		v.Fatalf("%+v", seen.Problems)
	}
	v.restore(ids[v.rand.IntN(len(ids))])
}

func (v *victim) restore(id string) {
	v.Helper()
	b, err := v.r.Load(v.Context(), id)
	if err != nil {
		v.Fatal(err)
	}
	same(v, id, v.shots[id], restore(v, v.r, b))
}

// Backups and collections are killed at random points (100 of them
// under make heavy): every backup that there was, and that nobody deleted, restores.
func TestKilledProcessesDamageNoBackup(t *testing.T) {
	kills := jobstest.Size(t, jobstest.Kills, 20, 100)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := impatient(t)
	v := &victim{
		T: t, r: create(t, o), site: newSite(t, 60), rand: rand.New(rand.NewPCG(seed, 0)),
		shots: map[string]map[string]string{}, took: map[string]time.Duration{}, killed: map[string]int{},
	}
	for range 3 {
		v.change()
		v.run(false, forBackup)
		v.ids()
	}
	v.run(false, forCollect)
	for v.killed[forBackup]+v.killed[forCollect] < kills {
		before := v.ids()
		if v.rand.IntN(2) == 0 {
			v.change()
			v.run(true, forBackup)
			now := v.ids()
			if !slices.Equal(before, now[:min(len(before), len(now))]) {
				t.Fatalf("before: %v, after a killed backup: %v", before, now)
			}
		} else {
			v.run(true, append([]string{forCollect}, before[:max(len(before)-3, 0)]...)...)
			now := v.ids()
			if len(now) < 3 || !slices.Equal(before[len(before)-3:], now[len(now)-3:]) {
				t.Fatalf("before: %v, after a killed collection: %v", before, now)
			}
		}
		v.check(v.ids())
	}
	passTime(t, v.r.Place())
	v.ageUnfinished()
	c := collect(t, v.r)
	if c.Young != 0 {
		t.Errorf("%+v", c)
	}
	for _, id := range v.ids() {
		v.restore(id)
	}
	for name := range shot(t, v.r.Place()) {
		folder, file := path.Split(name)
		waits := folder == pendingFolder || folder == locksFolder
		if unfinished(file) || waits && !strings.HasPrefix(file, "ended-") {
			t.Errorf("%s is left", name)
		}
	}
	t.Logf("killed %v", v.killed)
}

// unfinished says whether a file is one that a killed process was writing.
func unfinished(name string) bool { return strings.HasPrefix(name, ".cmsjobs-tmp-") }

// ageUnfinished makes what killed processes were writing old: a collection leaves alone
// what is younger than a minute.
func (v *victim) ageUnfinished() {
	v.Helper()
	old := time.Now().Add(-2 * time.Hour)
	for name := range shot(v, v.r.Place()) {
		if !unfinished(path.Base(name)) {
			continue
		}
		if err := os.Chtimes(filepath.Join(v.r.Place(), name), old, old); err != nil {
			v.Error(err)
		}
	}
}
