package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

func TestHealthSeesSizes(t *testing.T) {
	limits := Limits{}.withDefaults()
	at := func(size, rows int64, tables ...string) catalog.Stored {
		b := catalog.Stored{File: manifest.File{Header: manifest.Header{Started: time.Unix(1e9, 0)},
			Status: manifest.Complete, Size: size, Rows: rows}}
		for _, name := range tables {
			b.Tables = append(b.Tables, manifest.TableFigure{Name: name})
		}
		return b
	}
	for want, pair := range map[string][2]catalog.Stored{
		"":       {at(5000, 10, "a"), at(6000, 9, "a", "b")},
		"small":  {at(900, 10), at(900, 10)},
		"shrunk": {at(5000, 10), at(2400, 10)},
		"grown":  {at(5000, 10), at(15001, 10)},
		"rows":   {at(5000, 10), at(5000, 4)},
		"table":  {at(5000, 10, "a", "b"), at(5000, 10, "a")},
	} {
		s := Health{Checked: time.Unix(1e9+60, 0)}
		limits.small(&s, "local", pair[1])
		limits.compare(&s, "local", pair[0], pair[1])
		var codes []string
		for _, w := range s.Warnings {
			codes = append(codes, w.Code)
		}
		if !slices.Equal(codes, strings.Fields(want)) {
			t.Errorf("want %q, got %v", want, codes)
		}
	}
}
