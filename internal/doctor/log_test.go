package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
)

// A server that removes its log soon is said with what to set: by the time between two
// looks at it too.
func TestALogThatTheServerRemovesSoonIsSeen(t *testing.T) {
	for _, c := range []struct {
		keeps, every time.Duration
		fix          string // "" is no finding
	}{
		{0, time.Minute, ""}, // for ever
		{24 * time.Hour, time.Minute, ""},
		{time.Hour, time.Minute, "86400 seconds"},
		{48 * time.Hour, 6 * time.Hour, "216000 seconds"},
		{60 * time.Hour, 6 * time.Hour, ""},
	} {
		server := binlog.Server{Format: "ROW", RowImage: "FULL", Keeps: c.keeps}
		found := judgeLog(server, config.Backup{Tool: "own", LogEvery: c.every})
		if len(found) > 1 || (len(found) == 1) != (c.fix != "") ||
			len(found) == 1 && !strings.Contains(found[0].Fix, c.fix) {
			t.Errorf("%s kept, archived every %s: %+v", c.keeps, c.every, found)
		}
	}
}
