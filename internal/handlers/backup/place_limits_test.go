package backup

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
)

// A place without separate numbers has the general ones.
func TestPlacesHaveTheirOwnRetention(t *testing.T) {
	o := Options{Retention: retention.Rules{Keep: 7, Weekly: 4, MinAge: time.Hour}, MaxBytes: 10,
		Places: map[string]PlaceLimits{"sftp": {Retention: retention.Rules{Keep: 30}, MaxBytes: 20}}}
	given := o.Places["sftp"]
	o.setDefaults()
	if got := o.limitsOf("sftp"); got.Retention.Keep != 30 || got.MaxBytes != 20 || got.Retention.MinAge == 0 {
		t.Errorf("its own are %+v", got)
	}
	if got := o.limitsOf("local"); got.Retention.Keep != 7 || got.Retention.Weekly != 4 || got.MaxBytes != 10 {
		t.Errorf("the general ones are %+v", got)
	}
	if given.Retention.MinAge != 0 {
		t.Error("the caller's were changed")
	}
}
