package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
)

// checkConditions measures all conditions, as the service does.
func checkConditions(ctx context.Context, r *app.Services) ([]Finding, error) {
	if !r.Config.Conditions.Enabled {
		return []Finding{ok("conditions are not watched (conditions.enabled)")}, nil
	}
	e, err := r.Evaluator(nil)
	if err != nil {
		return nil, err
	}
	states := e.Evaluate(ctx)
	var found []Finding
	for _, s := range states {
		fix, what := strings.ReplaceAll(s.Fix, "`", ""), s.Title+": "+s.Detail
		if s.Active && !s.Since.IsZero() && s.Since.Before(r.Now()) {
			what += fmt.Sprintf(" (since %s UTC)", s.Since.UTC().Format("2006-01-02 15:04:05"))
		}
		var f Finding
		switch {
		case s.Err != nil:
			f = warn("", "could not look: %v", s.Err)
		case !s.Active:
			continue
		case s.Severity == conditions.Failing:
			f = fail(fix, "%s", what)
		default:
			f = warn(fix, "%s", what)
		}
		f.Check, f.title = s.Name, s.Title
		found = append(found, f)
	}
	if len(found) == 0 {
		found = append(found, ok("none of %d conditions holds", len(states)))
	}
	return found, nil
}

// ownScheduler says whether a scheduler of ours runs.
func ownScheduler(ctx context.Context, r *app.Services) ([]Finding, error) {
	live, err := r.LiveSchedulers(ctx)
	switch {
	case err != nil:
		return nil, err
	case live == 0 && !r.Config.Schedule.Enabled:
		return []Finding{warn("set schedule.enabled: true and start cmsjobs run", "no scheduler runs: the CMS's own "+
			"does not, and ours is switched off")}, nil
	case live == 0:
		return []Finding{warn("start cmsjobs run (not only cmsjobs work)", "no scheduler runs: neither the CMS's nor "+
			"ours")}, nil
	}
	return []Finding{
		ok("the CMS's own scheduler does not run; %d {scheduler|schedulers} of ours does its work",
			live)}, nil
}
