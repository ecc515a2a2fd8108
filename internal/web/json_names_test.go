package web_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// snake is how a member of a JSON object is named.
var snake = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// foreignNames are the types whose members are named by others, and why.
var foreignNames = map[string]string{
	"compat.EnqueueRequest": "S1 and S4 write runAt, jobType and the like in requests",
	"compat.S2Job":          "S2's answers write maxAttempts and the like",
}

// everSet are the times that are never zero where they are shown, and why.
var everSet = map[string]string{
	"access.AuditEntry.At":           "a column that is NOT NULL",
	"access.Lock.Until":              "a lock is a moment in the future",
	"access.Token.CreatedAt":         "a column that is NOT NULL",
	"backups.MomentPlan.At":          "the time that was asked for",
	"backups.MomentPlan.Snapshot":    "only backups that know theirs lead to a moment",
	"backups.Moments.From":           "a span has both ends",
	"backups.Moments.Until":          "a span has both ends",
	"jobs.LogLine.At":                "the clock's, when the line is written",
	"jobs.ThroughputItem.At":         "a step of the time that was asked for",
	"mail.Mail.At":                   "a column that is NOT NULL",
	"mail.MailTry.At":                "a column that is NOT NULL",
	"mail.Suppression.CreatedAt":     "a column that is NOT NULL",
	"ops.FailureGroupView.FirstSeen": "a group has a failure",
	"ops.FailureGroupView.LastSeen":  "a group has a failure",
	"ops.ProcessView.StartedAt":      "the clock's, when the process starts",
	"ops.RunningView.Since":          "the clock's, when the run begins",
	"ops.TickView.Tick":              "a moment of the schedule",
	"ops.WorkerView.SeenAt":          "a column that is NOT NULL",
	"ops.WorkerView.StartedAt":       "the clock's, when the worker starts",
	"overview.SeriesView.Since":      "the time that was asked for",
	"sitemap.Submission.At":          "a column that is NOT NULL",
	"webhooks.Delivery.At":           "a column that is NOT NULL",
}

// jsonFaults walks through what a type writes as JSON.
type jsonFaults struct {
	seen map[reflect.Type]bool
	used []string // exceptions that are still needed
	all  []string
}

func (j *jsonFaults) of(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		j.of(t.Elem())
	case reflect.Struct:
		if t == timeType || j.seen[t] || t.Implements(reflect.TypeFor[json.Marshaler]()) {
			return
		}
		j.seen[t] = true
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				j.member(t, f)
			}
		}
	}
}

func (j *jsonFaults) member(t reflect.Type, f reflect.StructField) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	at := t.String() + "." + f.Name
	excepted := func(exceptions map[string]string, key string) bool {
		_, is := exceptions[key]
		if is {
			j.used = append(j.used, key)
		}
		return is
	}
	switch {
	case f.Anonymous && name == "":
	case name == "":
		j.all = append(j.all, at+" has the name that Go gave it")
	case !snake.MatchString(name) && !excepted(foreignNames, t.String()):
		j.all = append(j.all, fmt.Sprintf("%s is named %q", at, name))
	}
	switch {
	case f.Type == timeType && !strings.Contains(options, "omitzero") && !excepted(everSet, at):
		j.all = append(j.all, at+" may show the time zero: omitzero leaves it out")
	case f.Type == reflect.TypeFor[time.Duration]():
		j.all = append(j.all, at+" is a number of nanoseconds")
	}
	j.of(f.Type)
}

// TestJSONOfTheAPIHasNoGo looks at the type of every body and answer of every route: names are
// snake_case, no time is shown as the year 1, and no length of time is Go's.
func TestJSONOfTheAPIHasNoGo(t *testing.T) {
	j := jsonFaults{seen: map[reflect.Type]bool{}}
	routes := 0
	for _, r := range allRoutes() {
		for _, v := range []any{r.Body, r.Answer} {
			if v != nil {
				routes++
				j.of(reflect.TypeOf(v))
			}
		}
	}
	for _, fault := range j.all {
		t.Error(fault)
	}
	for _, exceptions := range []map[string]string{foreignNames, everSet} {
		for key := range exceptions {
			if !slices.Contains(j.used, key) {
				t.Errorf("the exception %s is not needed", key)
			}
		}
	}
	if routes < 60 || len(j.seen) < 50 {
		t.Errorf("%d bodies and answers with %d types: the test looks in the wrong place", routes, len(j.seen))
	}
}
