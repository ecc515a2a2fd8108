package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// jsonKey is how a key of ours is written: with a small letter first. Names that
// are data (types, queues, settings, headers) begin so, too, or are listed.
var jsonKey = regexp.MustCompile(`^[a-z$][A-Za-z0-9_.\-:/]*$`)

// goValue is how Go writes a moment that is not set, and a length of time.
var goValue = regexp.MustCompile(`^(0001-01-01T00:00:00Z|(\d+(\.\d+)?(ns|µs|ms|s|m|h))+)$`)

// goValues are the texts that Go wrote, by their paths.
func goValues(value any, path string) (wrong []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			wrong = append(wrong, goValues(inner, path+"."+key)...)
		}
	case []any:
		for _, inner := range v {
			wrong = append(wrong, goValues(inner, path+"[]")...)
		}
	case string:
		if goValue.MatchString(v) {
			wrong = append(wrong, path+"="+v)
		}
	}
	return wrong
}

// goValuesMeant are the commands that show lengths of time as people write them, and why.
var goValuesMeant = map[string]string{
	"config show": "settings stand there as the configuration writes them",
	"types":       "the example of cmsjobs.probe says how long it sleeps",
	"types --all": "the same",
}

// goNames are the keys of a value that Go named: those without a JSON name.
func goNames(value any, path string) (wrong []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if !jsonKey.MatchString(key) {
				wrong = append(wrong, path+"."+key)
			}
			wrong = append(wrong, goNames(inner, path+"."+key)...)
		}
	case []any:
		for _, inner := range v {
			wrong = append(wrong, goNames(inner, path+"[]")...)
		}
	}
	return wrong
}

// TestJSONHasNoGoNames looks at the keys of what commands print with --json, and of
// everything that the API documents.
func TestJSONHasNoGoNames(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	want(t, call(t, nil, dsn, "enqueue", "cmsjobs.probe", `{}`), 0)
	want(t, call(t, nil, dsn, "enqueue", "cmsjobs.probe", `{"fail":"x"}`, "--max-attempts", "1"), 0)
	want(t, call(t, nil, dsn, "work", "--stop-when-empty"), 0)
	want(t, call(t, nil, dsn, "token", "create", "x", "--scopes", "read"), 0)
	for _, command := range []string{"version", "config show", "doctor", "types", "types --all", "types show mail.send",
		"jobs list", "jobs stats", "jobs runs", "failed list", "failed groups", "queues", "workers", "schedule list",
		"token list", "access locks", "breakers list", "health", "backup list", "webhook list", "mail log",
		"clean --dry-run", "migrate status"} {
		r := call(t, nil, append([]string{dsn, "--json"}, strings.Fields(command)...)...)
		var value any
		if err := json.Unmarshal([]byte(r.out), &value); err != nil {
			if r.out != "" || r.code == 0 {
				t.Errorf("%s --json: exit code %d, %v in %q", command, r.code, err, r.out)
			}
			continue
		}
		if wrong := goNames(value, command); len(wrong) > 0 {
			t.Errorf("%s --json has keys without a JSON name: %v", command, wrong)
		}
		wrong := goValues(value, command)
		if _, meant := goValuesMeant[command]; meant != (len(wrong) > 0) {
			t.Errorf("%s --json has times and lengths as Go writes them: %v", command, wrong)
		}
	}
	for _, zero := range []any{mail.Entry{}, mail.Attempt{}, mail.Suppression{}, mail.Result{}, template.Info{},
		webhook.Delivery{}, breaker.Info{}, access.Lock{}, access.Token{}, analytics.Imported{}, tables.Description{}} {
		text, err := json.Marshal(zero)
		var value any
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if wrong := goNames(value, fmt.Sprintf("%T", zero)); err != nil || len(wrong) > 0 {
			t.Errorf("keys without a JSON name: %v %v", wrong, err)
		}
	}
	document, err := os.ReadFile(filepath.Join("..", "web", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &api); err != nil {
		t.Fatal(err)
	}
	for name, s := range api.Components.Schemas {
		for key := range s.Properties {
			if !jsonKey.MatchString(key) {
				t.Errorf("the API's %s has the key %s", name, key)
			}
		}
	}
	if len(api.Components.Schemas) < 50 {
		t.Errorf("the API has %d schemas: the test looks in the wrong place", len(api.Components.Schemas))
	}
}
