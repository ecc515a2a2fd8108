package summary_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/web"
	feature "github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/summary"
)

// TestAResultIsSaidInBothLanguages follows one and many through the sentences, and a
// list that is longer than the page shows.
func TestAResultIsSaidInBothLanguages(t *testing.T) {
	texts, err := web.Texts([]web.Feature{feature.Feature(feature.Ports{})})
	if err != nil {
		t.Fatal(err)
	}
	var one, many phrase.Summary
	one.Say("Deleted %s {file|files}, %s.", int64(1), phrase.Size(18<<20))
	many.Say("Wrote %s {file|files} with %s {address|addresses}, %s, in %s.", 3, 1682, phrase.Size(2048),
		1200*time.Millisecond)
	phrase.Lines(&many, phrase.Columns("Could not be deleted"), make([]string, 21))
	for _, c := range []struct {
		language string
		of       phrase.Summary
		want     string
	}{
		{"en", one, "Deleted 1 file, 18 MiB."},
		{"vi", one, "Đã xóa 1 tệp, 18 MiB."},
		{"en", many, "Wrote 3 files with 1\u202f682 addresses, 2.0 KiB, in 1.2 s."},
		{"vi", many, "Đã ghi 3 tệp với 1\u202f682 địa chỉ, 2.0 KiB, trong 1.2 s."},
	} {
		v := summary.In(texts.In(c.language), c.of)
		if len(v.Sentences) != 1 || v.Sentences[0] != c.want {
			t.Errorf("%s: %q, want %q", c.language, v.Sentences, c.want)
		}
	}
	list := summary.In(texts.In("vi"), many).Tables
	if len(list) != 1 || list[0].Columns[0] != "Không xóa được" || len(list[0].Rows) != 20 || list[0].Left != 1 {
		t.Errorf("the list is %+v", list)
	}
	fields := summary.Of(texts.In("en"), jobs.NewRegistry(), "x", []byte(`{"b":["x","y"],"a":{"n": 1},"c":"text"}`)).Tables
	if got := fmt.Sprint(fields); got != `[{[Field Value] [[a {"n":1}] [b x, y] [c text]] 0}]` {
		t.Errorf("the fields are %s", got)
	}
}
