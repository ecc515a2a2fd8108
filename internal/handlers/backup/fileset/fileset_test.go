package fileset

import "testing"

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"storage/tmp", "storage/tmp/a/b", true},
		{"storage/*.log", "storage/x.log", true},
		{"storage/*.log", "storage/a/x.log", false},
		{"**/*.log", "storage/a/b/x.log", true},
		{"**/cache/**", "storage/a/cache/b", true},
		{"storage/a", "storage/ab", false},
		{"storage/[a-c]?", "storage/bz", true},
		{"cache*", "cache_locks", true},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
	if CheckPatterns([]string{"a/[b"}) == nil {
		t.Error("a broken pattern is taken")
	}
}
