package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of countries that is gone, or damaged, stops no mail and no backup: doctor says
// it, and only the import of logs waits, as a view that is stored keeps its country.
func TestWithoutTheFileOfCountriesTheServiceGoesOn(t *testing.T) {
	t.Parallel()
	dir, _ := sampleSite(t)
	whole, err := os.ReadFile(vietnam(t))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	on := func(args ...string) result {
		t.Helper()
		return call(t, nil, append([]string{"--cms", dir, "--set", "analytics.mmdb=" + path}, args...)...)
	}
	for name, damage := range map[string]func() error{
		"gone":      func() error { return os.RemoveAll(path) },
		"torn":      func() error { return os.WriteFile(path, whole[:len(whole)/2], 0o600) },
		"a page":    func() error { return os.WriteFile(path, []byte("<html>sign in to download</html>"), 0o600) },
		"no bytes":  func() error { return os.WriteFile(path, nil, 0o600) },
		"a folder":  func() error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
		"no rights": func() error { _ = os.Remove(path); return os.Symlink(path, path) },
	} {
		if err := damage(); err != nil {
			t.Fatal(name, err)
		}
		want(t, on("enqueue", "cache.clearExpired"), 0)
		want(t, on("config", "check"), exitUsage, "analytics.mmdb", path)
		if found := on("doctor"); !strings.Contains(found.out, "without countries") ||
			!strings.Contains(found.out, path) {
			t.Errorf("%s: doctor says nothing of the file\n%s", name, found.out)
		}
		want(t, on("analytics", "import", log), 1, "database of countries "+path)
		_ = os.Remove(path)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := on("doctor"); strings.Contains(found.out, "without countries") {
		t.Errorf("a good file is doubted\n%s", found.out)
	}
	want(t, on("analytics", "import", log), 0)
	want(t, on("config", "check"), 0, "no fault")
}
