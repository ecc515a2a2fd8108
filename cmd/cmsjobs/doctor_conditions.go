package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/conditions"

	"github.com/cmsjobs/cmsjobs/internal/display"
)

// checkConditions measures all conditions, as the service does.
func checkConditions(ctx context.Context, r *services) ([]finding, error) {
	if !r.config.Conditions.Enabled {
		return []finding{ok("conditions are not watched (conditions.enabled)")}, nil
	}
	e, err := r.evaluator(nil)
	if err != nil {
		return nil, err
	}
	states := e.Evaluate(ctx)
	var found []finding
	for _, s := range states {
		fix, what := strings.ReplaceAll(s.Fix, "`", ""), s.Title+": "+s.Detail
		if s.Active && !s.Since.IsZero() && s.Since.Before(r.now()) {
			what += fmt.Sprintf(" (since %s UTC)", s.Since.UTC().Format("2006-01-02 15:04:05"))
		}
		var f finding
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
		f.Check = s.Name
		found = append(found, f)
	}
	if len(found) == 0 {
		found = append(found, ok("none of %d conditions holds", len(states)))
	}
	return found, nil
}

// ownScheduler says whether a scheduler of ours runs.
func ownScheduler(ctx context.Context, r *services) ([]finding, error) {
	live, err := r.liveSchedulers(ctx)
	switch {
	case err != nil:
		return nil, err
	case live == 0 && !r.config.Schedule.Enabled:
		return []finding{warn("set schedule.enabled: true and start cmsjobs run", "no scheduler runs: the CMS's own does not, and ours is switched off")}, nil
	case live == 0:
		return []finding{warn("start cmsjobs run (not only cmsjobs work)", "no scheduler runs: neither the CMS's nor ours")}, nil
	}
	return []finding{ok("the CMS's own scheduler does not run; %s of ours does its work", display.Plural(live, "scheduler", "schedulers"))}, nil
}
