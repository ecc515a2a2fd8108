package dump_test

import (
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The error of a refused login has a hint of what to do, and the password is not
// repeated.
func TestARefusedLoginSaysWhatToDo(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		db := jobstest.Open(t, engine)
		_, err := dump.MySQL(t.Context(), db.DSNOf(t, "nobody", "s3cret"), dump.Options{},
			func(dump.Part, string, []byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "check them, that the user may log in from this host") ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	})
}
