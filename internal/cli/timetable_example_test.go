package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// The changes of the timetable that the example shows are taken as they stand
// there, and config check finds the faults that would stop the service.
func TestTheExampleOfTheTimetable(t *testing.T) {
	t.Parallel()
	_, example, _ := strings.Cut(string(config.Example()), "  # Changes to the timetable, or further entries. For "+
		"example:\n")
	example, _, found := strings.Cut(example, "  # policy for missed ticks")
	if !found {
		t.Fatal("config.example.yaml shows no changes of the timetable")
	}
	entries := strings.ReplaceAll(example, "  #   ", "    ")
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", "cms: {dir: "+dir+"}\nschedule:\n  entries:\n"+entries)
	want(t, call(t, nil, "--config", good, dsn, "config", "check"), 0, "no fault")
	listed := call(t, nil, "--config", good, dsn, "schedule", "list", "--json")
	want(t, listed, 0, `"30 4 * * *"`)
	want(t, listed, 0, `"menus"`)

	bad := file("bad.yaml", "schedule: {entries: {backup: {cron: '30 4 * * *'}}}\n")
	want(t, call(t, nil, "--config", bad, "config", "check"), exitUsage, "schedule.entries.backup", "backup.generate")
}
