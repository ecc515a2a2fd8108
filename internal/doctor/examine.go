package doctor

import (
	"cmp"
	"context"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warn, fail
	What   string `json:"what"`
	Fix    string `json:"fix,omitempty"` // what to do about it

	condition string // that says the same once it holds
	what, fix sentence
	title     string // of the condition that holds; "" where the finding is none
}

// by says what to do, with values.
func (f Finding) by(form string, args ...any) Finding {
	f.fix = sentence{form, args}
	f.Fix = f.fix.String()
	return f
}

// The states of a finding.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

func ok(format string, args ...any) Finding { return found(OK, "", format, args) }

func warn(fix, format string, args ...any) Finding { return found(Warn, fix, format, args) }

func fail(fix, format string, args ...any) Finding { return found(Fail, fix, format, args) }

func found(status, fix, form string, args []any) Finding {
	what := sentence{form, args}
	return Finding{Status: status, What: what.String(), Fix: fix, what: what}
}

// check is one thing that doctor looks at. An error means that it could not
// look, and is shown as a warning.
type check struct {
	name string
	look func(context.Context, *app.Services) ([]Finding, error)
}

// checks are all that doctor looks at, in the order in which it says them. A
// handler's check is added here.
func checks() []check {
	return []check{
		{"database", checkDatabase},
		{"durability", checkDurability},
		{"clock", checkClock},
		{"time zone", checkZone},
		{"jobs table", checkLayout},
		{"numbers", checkNumbers},
		{"migrations", checkMigrations},
		{"rights", checkRights},
		{"lease", checkLease},
		{"queues", checkQueues},
		{"new jobs", checkFeed},
		{"other rows", checkForeign},
		{"workers", checkWorkers},
		{"stalled jobs", checkStalled},
		{"PHP's workers", checkShared},
		{"PHP's workers", checkPHPPools},
		{"queue table", checkQueueTable},
		{"failed jobs", checkFailed},
		{"folders", checkFolders},
		{"web server", checkWebServer},
		{"umask", checkUmask},
		{"CMS", checkCMS},
		{"CMS scheduler", checkCMSScheduler},
		{"sitemap", checkSitemap},
		{"sitemap", checkForeignSitemap},
		{"pictures", checkPictures},
		{"sign-in", checkSignIn},
		{"mail", checkMail},
		{"encryption", checkEncryption},
		{"breakers", checkBreakers},
		{"backups", checkBackups},
		{"repository", checkRepository},
		{"log archive", checkLog},
		{"space for backups", checkBackupSpace},
		{"bucket", checkBucket},
		{"analytics", checkAnalytics},
		{"admin page", checkAdminPage},
		{"types", checkKinds},
		{"conditions", checkConditions},
	}
}

// Run runs all checks, in their order.
func Run(ctx context.Context, r *app.Services) []Finding {
	var all []Finding
	for _, c := range checks() {
		found, err := c.look(ctx, r)
		if err != nil {
			found = append(found, warn("", "could not look: %v", err))
		}
		for _, f := range found {
			f.Check = cmp.Or(f.Check, c.name)
			all = append(all, f)
		}
	}
	return once(all)
}

// once leaves out what a check found where the condition for the same holds: it
// says since when.
func once(all []Finding) []Finding {
	holds := map[string]bool{}
	for _, f := range all {
		holds[f.Check] = true
	}
	return slices.DeleteFunc(all, func(f Finding) bool { return f.condition != "" && holds[f.condition] })
}
