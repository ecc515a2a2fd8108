package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// finding is what one check found.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"` // ok, warn, fail
	What  string `json:"what"`
	Mend  string `json:"mend,omitempty"` // what to do about it

	condition string // that says the same once it holds
}

// The states of a finding.
const (
	fine    = "ok"
	warning = "warn"
	broken  = "fail"
)

func ok(format string, args ...any) finding {
	return finding{State: fine, What: fmt.Sprintf(format, args...)}
}

func warn(mend, format string, args ...any) finding {
	return finding{State: warning, What: fmt.Sprintf(format, args...), Mend: mend}
}

func fail(mend, format string, args ...any) finding {
	return finding{State: broken, What: fmt.Sprintf(format, args...), Mend: mend}
}

// check is one thing that doctor looks at. An error means that it could not
// look, and is shown as a warning.
type check struct {
	name string
	look func(context.Context, *rooms) ([]finding, error)
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
		{"other rows", checkForeign},
		{"workers", checkWorkers},
		{"failed jobs", checkFailed},
		{"folders", checkFolders},
		{"CMS", checkCMS},
		{"CMS scheduler", checkCMSScheduler},
		{"sitemap", checkSitemap},
		{"mail", checkMail},
		{"breakers", checkBreakers},
		{"backups", checkBackups},
		{"bucket", checkBucket},
		{"analytics", checkAnalytics},
		{"admin page", checkDoors},
		{"kinds", checkKinds},
		{"conditions", checkConditions},
	}
}

func (a *app) doctorCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything and say how to mend what is wrong",
		Long: `Looks at the configuration, the database, the tables, the clocks, the folders, the workers and the
queues, and all conditions that the service watches, and says how to fix what it finds. It changes
nothing but our own tables' version.

Exit codes: 0 nothing is marked fail · 1 something is (with --strict: or warn) · 2 the configuration has
faults · 3 database not usable`,
		Example: "  cmsjobs --cms /var/www/site doctor\n  cmsjobs doctor --json\n  cmsjobs doctor --strict",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.load()
			if err != nil {
				return err
			}
			r, err := a.open(c.Context(), l)
			if err != nil {
				f := finding{Check: "database", State: broken, What: err.Error(), Mend: "fix what the message says, then run cmsjobs doctor again"}
				return errors.Join(a.printFindings([]finding{f}), err)
			}
			defer a.closing(r)
			return a.examine(c.Context(), r)
		},
	}
	command.Flags().BoolVar(&a.strict, "strict", false, "warnings make the exit code 1, too")
	return command
}

func (a *app) examine(ctx context.Context, r *rooms) error {
	var all []finding
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
	all = once(all)
	bad := 0
	for _, f := range all {
		if f.State == broken || a.strict && f.State == warning {
			bad++
		}
	}
	if err := a.printFindings(all); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("doctor: %s", plural(bad, "finding needs", "findings need")+" action")
	}
	return nil
}

// once leaves out what a check found where the condition for the same holds: it
// says since when.
func once(all []finding) []finding {
	holds := map[string]bool{}
	for _, f := range all {
		holds[f.Check] = true
	}
	return slices.DeleteFunc(all, func(f finding) bool { return f.condition != "" && holds[f.condition] })
}

func (a *app) printFindings(all []finding) error {
	if a.global.json {
		return a.printJSON(all)
	}
	for _, f := range all {
		if _, err := fmt.Fprintf(a.out, "%-4s  %-14s %s\n", f.State, f.Check, printable(f.What)); err != nil {
			return err
		}
		if f.Mend != "" {
			fmt.Fprintf(a.out, "      %-14s → %s\n", "", f.Mend)
		}
	}
	return nil
}
