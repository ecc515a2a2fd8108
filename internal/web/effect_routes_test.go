package web_test

import (
	"slices"
	"testing"
)

// effectRoutes are the routes that change something, and how they make jobs run.
// A new route stands here before it is merged, with the rule that it asks or with
// the reason why it needs none.
var effectRoutes = map[string]string{
	"jobs.enqueue":          "the rule: a way of TestAnEffectHappensExactlyIfItsEnqueueIsAllowed",
	"jobs.enqueueBatch":     "the rule",
	"jobs.requeue":          "the rule",
	"jobs.bulk":             "the rule, job by job",
	"failed.retry":          "the rule",
	"failed.retryAll":       "the rule, job by job",
	"schedules.run":         "the rule",
	"schedules.change":      "the rule",
	"mail.resend":           "the rule",
	"webhooks.redeliver":    "the rule for the type; the payload is one that the service sent before",
	"media.regenerate":      "the rule for the type; the service chooses the payloads",
	"backups.restore":       "the rule for the type; the plan chooses the payload",
	"backups.restorePost":   "the rule for the type; the plan chooses the payload",
	"backups.restoreMoment": "the rule for the type; the plan chooses the payload",
	"schedules.continue":    "the rule",
	"jobs.restore":          "the rule for the row",

	"cron.tick":        "MayWork: runs what is due by the schedule and by rows that others were asked for",
	"queues.continue":  "MayWork: the same",
	"workers.scale":    "MayWork: in more slots jobs of any type begin",
	"workers.scaleAll": "MayWork: the same",

	"filters.save":     "runs nothing",
	"filters.delete":   "runs nothing",
	"schedules.pause":  "runs nothing",
	"queues.pause":     "runs nothing",
	"queues.clear":     "cancels",
	"jobs.cancel":      "cancels",
	"jobs.delete":      "cancels",
	"failed.delete":    "deletes",
	"failed.deleteAll": "deletes; a large change is a job of the service that deletes only",
	"workers.stop":     "stops a worker; its jobs were due",
	"workers.restart":  "stops workers; their jobs were due",
	"workers.register": "runs jobs of the program's types, for tokens that may work; those who enqueued them were " +
		"asked",
	"workers.leave":       "stops a worker; its jobs were due",
	"backups.delete":      "deletes, for administrators",
	"locks.delete":        "lifts a lock, for administrators",
	"session.create":      "signs in",
	"session.delete":      "signs out",
	"suppressions.add":    "keeps mail back",
	"suppressions.remove": "lets later mail through, and sends none",
	"tokens.create":       "for administrators; a token has no more rights than its maker",
	"tokens.revoke":       "takes rights away",
	"webhooks.add":        "for administrators; events make deliveries, not the request",
	"webhooks.change":     "for administrators; likewise",
	"webhooks.delete":     "deletes, for administrators",
}

// TestEveryChangingRouteSaysHowItMakesJobsRun keeps the list whole: a route that
// is not in it could make jobs run past the rule.
func TestEveryChangingRouteSaysHowItMakesJobsRun(t *testing.T) {
	var seen []string
	for _, r := range allRoutes() {
		if !r.Changes() {
			continue
		}
		seen = append(seen, r.Name)
		if effectRoutes[r.Name] == "" {
			t.Errorf("%s %s (%s) does not say how it makes jobs run", r.Method, r.Path, r.Name)
		}
	}
	for name := range effectRoutes {
		if !slices.Contains(seen, name) {
			t.Errorf("there is no changing route %s", name)
		}
	}
}
