package locale_test

import (
	"testing"
	"testing/fstest"

	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

func TestPluralsFollowTheNumberBeforeThem(t *testing.T) {
	folder := func(en, vi string) fstest.MapFS {
		return fstest.MapFS{"en.yaml": {Data: []byte(en)}, "vi.yaml": {Data: []byte(vi)}}
	}
	c, err := locale.Load(folder(`jobs: "%d failed {job|jobs}, %s {cause|causes}"`+"\n"+
		`rate: "%s %% of %d {run|runs} in “%s”"`,
		`jobs: "%d việc thất bại, %s nguyên nhân"`+"\n"+`rate: "%s %% của %d lần chạy trong “%s”"`))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		language, key, want string
		args                []any
	}{
		{"en", "jobs", "1 failed job, 2 causes", []any{1, "2"}},
		{"en", "jobs", "1 failed job, 1 cause", []any{int64(1), "1"}},
		{"en", "jobs", "0 failed jobs, 1 000 causes", []any{0, "1 000"}},
		{"en", "rate", "50.0 % of 1 run in “1”", []any{"50.0", 1, "1"}},
		{"en", "rate", "1 % of 11 runs in “1”", []any{"1", 11, "1"}},
		{"vi", "jobs", "1 việc thất bại, 1 nguyên nhân", []any{1, "1"}},
		{"en", "none", "⟨none⟩", nil},
	} {
		if got := c.In(x.language).Text(x.key, x.args...); got != x.want {
			t.Errorf("%s %s %v: %q, want %q", x.language, x.key, x.args, got, x.want)
		}
	}
}

func TestAKeyInTwoFilesIsRefused(t *testing.T) {
	same := fstest.MapFS{"en.yaml": {Data: []byte("a: x")}, "vi.yaml": {Data: []byte("a: y")}}
	if _, err := locale.Load(same, same); err == nil {
		t.Error("a text of one file hides that of another")
	}
}

func TestErrorsAreTranslatedByTheirForm(t *testing.T) {
	c, err := locale.Load(fstest.MapFS{"en.yaml": {Data: []byte("a: x")},
		"vi.yaml": {Data: []byte("a: y\nerrors:\n  \"No %s here: %d.\": \"Ở đây không có %s: %d.\"\n  \"worker\": " +
			"\"tiến trình\"\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.In("vi").Sentence("No %s here: %d.", []any{"worker", 3}); got != "Ở đây không có tiến trình: 3." {
		t.Error(got)
	}
	if got := c.In("en").Sentence("No %s here: %d.", []any{"worker", 3}); got != "No worker here: 3." {
		t.Error(got)
	}
}
