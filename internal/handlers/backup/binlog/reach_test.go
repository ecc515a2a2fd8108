package binlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// Over the limit the oldest backups lose their log, as few as will do. The newest one
// from which a replay may begin keeps it, although later ones are there that are not
// verified yet.
func TestTheLimitLeavesTheLogOfTheNewestGoodBackup(t *testing.T) {
	var all []Segment
	var kept []Base
	for i := range int64(5) {
		f := File{Server: "00000001", Created: 1000 * i, Name: fmt.Sprintf("log.%06d", i+1)}
		all = append(all, Segment{File: f, End: 500, Size: 100})
		kept = append(kept, Base{dump.LogPosition{Server: f.Server, File: f.Name, Offset: 4}, time.Unix(f.Created+500, 0)})
	}
	for _, c := range []struct{ most, left int64 }{{1000, 5}, {500, 5}, {499, 4}, {300, 3}, {299, 2}, {100, 2}, {-1, 2}} {
		fitting := (&Limit{Bytes: c.most, Stays: kept[3]}).fitting(all, kept)
		if left := size(all) - size(unneeded(all, fitting)); left != 100*c.left {
			t.Errorf("of %d bytes are left %d, want %d", c.most, left, 100*c.left)
		}
	}
}
