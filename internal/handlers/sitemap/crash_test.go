package sitemap_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// These make this test binary a process that writes the sitemap of the CMS in
// a folder, and stands still at one point of it to be killed.
const (
	childRoot    = "CMSJOBS_SITEMAP_CHILD"
	childPerFile = "CMSJOBS_SITEMAP_PER_FILE"
	childNote    = "CMSJOBS_SITEMAP_NOTE" // of the progress at which it stops …
	childDone    = "CMSJOBS_SITEMAP_DONE" // … when so much is done
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		fmt.Println("error:", writeAndStop(root))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func writeAndStop(root string) error {
	db, err := sqlx.Open("sqlite", jobstest.SQLiteDSN(filepath.Join(root, "cms.sqlite")))
	if err != nil {
		return err
	}
	perFile, err := strconv.Atoi(os.Getenv(childPerFile))
	if err != nil {
		return err
	}
	h := handler(fatal{}, &cms.Site{DB: db, Root: root, Env: cms.Env{"APP_URL": "https://cms.example"}},
		func(c *sitemap.Config) { c.Options.PerFile = perFile })
	_, err = h.Write(fatal{}.Context(), true, func(done, _ int64, note string) {
		if note == os.Getenv(childNote) && strconv.FormatInt(done, 10) == os.Getenv(childDone) {
			fmt.Println("here")
			select {}
		}
	})
	return fmt.Errorf("it came to its end: %w", err)
}

func TestAKilledRunLeavesAReadableMap(t *testing.T) {
	const posts = 20 // and so many files, a style sheet and an index
	site := plainCMS(t, jobstest.SQLite, "bigint")
	insert(t, site, "settings", 1, "theme", "ripple")
	insert(t, site, "settings", 2, "theme-ripple-homepage_id", "99")
	for i := 1; i <= posts; i++ {
		insert(t, site, "posts", i, "Post", nil, "published", before, before)
		insert(t, site, "slugs", i, fmt.Sprintf("post-%d", i), i, postClass, "")
	}
	if _, err := site.DB.Exec("VACUUM INTO ?", filepath.Join(site.Root, "cms.sqlite")); err != nil {
		t.Fatal(err)
	}
	h := handler(t, site, func(c *sitemap.Config) { c.Options.PerFile = 1 })
	for _, at := range []struct {
		perFile int
		note    string
		done    int
	}{{1, "writing", 1}, {1, "writing", posts}, {1, "publishing", 0}, {1, "publishing", 1}, {1, "publishing", posts},
		{1, "publishing", posts + 1}, {1, "publishing", posts + 2},
		{2, "writing", posts / 2}, {2, "publishing", 1}, {2, "publishing", posts/2 + 1},
		{2, "publishing", posts/2 + 2}} {
		t.Run(fmt.Sprintf("%d a file, %s %d", at.perFile, at.note, at.done), func(t *testing.T) {
			write(t, h, true)
			killAt(t, childRoot+"="+site.Root, fmt.Sprintf("%s=%d", childPerFile, at.perFile), childNote+"="+at.note,
				fmt.Sprintf("%s=%d", childDone, at.done))
			if r, err := h.Check(t.Context(), nil); err != nil || !r.OK() || r.Missing != 0 || r.Extra != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			readIndex(t, site)
		})
	}
	write(t, h, true)
	for _, name := range files(t, site) {
		if strings.HasPrefix(name, ".") {
			t.Errorf("%s is left behind", name)
		}
	}
}

// killAt runs the child until it says that it is there, and kills it with
// SIGKILL.
func killAt(t *testing.T, env ...string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), env...)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	if said.Scan(); said.Text() != "here" {
		t.Errorf("the child said %q", said.Text())
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != -1 {
		t.Fatalf("the child was not killed: %v", err)
	}
}

func TestTwoRunsDoNotMix(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	h := handler(t, site, nil)
	var inside error
	_, err := h.Write(t.Context(), true, func(_, _ int64, note string) {
		if note == "publishing" && inside == nil {
			_, inside = handler(t, site, nil).Write(t.Context(), true, nil)
		}
	})
	if err != nil || !errors.Is(inside, sitemap.ErrBusy) {
		t.Errorf("the first run: %v; the second: %v, want ErrBusy", err, inside)
	}
	write(t, h, true)
	checked(t, h)
}
