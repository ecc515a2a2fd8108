package queue

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// refusal says that the database will never take these data, however often it
// is asked.
func refusal(err error) bool {
	return database.Classify(err) == database.JobsFault || errors.Is(err, mysql.ErrPktTooLarge)
}

// withoutData leaves out of e what the database may have refused; false when
// nothing is left to leave out. Follow-ups go last, and not silently: the job then
// fails permanently, as in checked.
func withoutData(e pendingSettlement, reason error) (pendingSettlement, bool) {
	x := *e.Settlement
	switch {
	case !e.bare:
		x.Result, x.Lines, x.Claimed.Job.Data = nil, nil, nil
		x.Error = inASCII(tables.CutWord(tables.FirstLine(x.Error)), "?")
		x.Claimed.Payload = []byte(inASCII(tables.ValidText(string(x.Claimed.Payload)), ""))
	case len(x.FollowUps) > 0:
		x.Outcome, x.FollowUps = jobs.Failed, nil
		x.Error = inASCII(tables.CutWord("the job was done, but the jobs that should follow it are refused: "+
			tables.FirstLine(reason.Error())), "?")
	default:
		return e, false
	}
	return pendingSettlement{Settlement: &x, index: e.index, bare: true}, true
}

// inASCII writes every other character as other, or with "" as JSON's strings
// escape it: a table of an older character set takes that.
func inASCII(text, other string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case other != "":
			b.WriteString(other)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}
