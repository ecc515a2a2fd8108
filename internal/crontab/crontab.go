package crontab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/robfig/cron/v3"
	"go.yaml.in/yaml/v3"
)

// Entry is one line of a timetable.
type Entry struct {
	Name    string
	Cron    string
	Program string
	Args    []string
	Dir     string
	User    string
	Env     map[string]string
}

// Left is a line that cannot become an entry.
type Left struct{ Line, Why string }

// Options say how to read.
type Options struct {
	System bool   // each line names a user after the time, as in /etc/crontab
	Dir    string // where commands of Laravel's scheduler run
}

var (
	variable = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$`)
	discards = regexp.MustCompile(`\s*(>>?\s*/dev/null|[12]>>?\s*/dev/null|&>\s*/dev/null|2>&1)`)
	needsSh  = regexp.MustCompile("[|&;<>()$`\\\\\"'*?\\[#~%{}!\n]")
	notName  = regexp.MustCompile(`[^a-z0-9]+`)
)

// Read reads a crontab, or the JSON of "php artisan schedule:list --json".
func Read(text []byte, o Options) ([]Entry, []Left, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '[' {
		return laravel(trimmed, o)
	}
	var entries []Entry
	var left []Left
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if m := variable.FindStringSubmatch(line); m != nil {
			env[m[1]] = strings.Trim(m[2], `"'`)
			continue
		}
		e, why := entry(line, o, env)
		if why != "" {
			left = append(left, Left{line, why})
			continue
		}
		entries = append(entries, e)
	}
	return named(entries), left, nil
}

// entry reads one line of a crontab; why says why it cannot become an entry.
func entry(line string, o Options, env map[string]string) (e Entry, why string) {
	fields := 5
	if strings.HasPrefix(line, "@") {
		fields = 1
	}
	words := fieldsOf(line, fields)
	if o.System && len(words) > fields {
		user := fieldsOf(words[fields], 1)
		e.User, words[fields] = user[0], strings.Join(user[1:], "")
	}
	if len(words) <= fields || words[fields] == "" {
		return e, "it has no command"
	}
	e.Cron = strings.Join(words[:fields], " ")
	if e.Cron == "@reboot" {
		return e, "@reboot is no time: let systemd start it"
	}
	if _, err := cron.ParseStandard(e.Cron); err != nil {
		return e, fmt.Sprintf("its time cannot be read: %v", err)
	}
	command := words[fields]
	switch {
	case strings.Contains(command, "schedule:run"):
		return e, "it is Laravel's scheduler: import the output of php artisan schedule:list --json in its place"
	case strings.Contains(strings.ReplaceAll(command, `\%`, ""), "%"):
		return e, "a % begins the program's input, which an entry does not have"
	}
	e.command(strings.ReplaceAll(command, `\%`, "%"))
	for name, value := range env {
		switch name {
		case "MAILTO", "SHELL", "LOGNAME", "USER":
		default:
			if e.Env == nil {
				e.Env = map[string]string{}
			}
			e.Env[name] = value
		}
	}
	return e, ""
}

// fieldsOf are the first n words of a line, and what follows them as it stands.
func fieldsOf(line string, n int) (words []string) {
	for len(words) < n {
		word, rest, more := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		words, line = append(words, word), strings.TrimSpace(rest)
		if !more {
			return words
		}
	}
	return append(words, line)
}

// command sets program and arguments. What needs a shell, or names its program
// without its folder, gets one. Output that is thrown away is kept: it is the
// job's result.
func (e *Entry) command(text string) {
	text = strings.TrimSpace(discards.ReplaceAllString(text, ""))
	if words := strings.Fields(text); len(words) > 0 && path.IsAbs(words[0]) && !needsSh.MatchString(text) {
		e.Program, e.Args = words[0], words[1:]
	} else {
		e.Program, e.Args = "/bin/sh", []string{"-c", text}
	}
	e.Name = nameOf(text)
}

// nameOf is a name for a command: artisan's, or the program's.
func nameOf(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return "command"
	}
	name := path.Base(words[0])
	for i, w := range words {
		if path.Base(strings.Trim(w, `'"`)) == "artisan" && i+1 < len(words) {
			name = words[i+1]
		}
	}
	if name = strings.Trim(notName.ReplaceAllString(strings.ToLower(name), "-"), "-"); name == "" {
		return "command"
	}
	return name
}

// named makes names unique.
func named(entries []Entry) []Entry {
	seen := map[string]int{}
	for i := range entries {
		base := entries[i].Name
		if seen[base]++; seen[base] > 1 {
			entries[i].Name = fmt.Sprintf("%s-%d", base, seen[base])
		}
	}
	return entries
}

// laravel reads what "php artisan schedule:list --json" prints.
func laravel(text []byte, o Options) (entries []Entry, left []Left, err error) {
	var list []struct{ Expression, Command, Description string }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, nil, fmt.Errorf("reading the list of schedule:list --json: %w", err)
	}
	for _, x := range list {
		line := strings.TrimSpace(x.Expression + " " + x.Command)
		switch _, err := cron.ParseStandard(x.Expression); {
		case err != nil:
			left = append(left, Left{line, fmt.Sprintf("its time cannot be read: %v", err)})
		case !strings.Contains(x.Command, "artisan"):
			left = append(left, Left{line, "it is a closure or a job of PHP: only php artisan can run it"})
		default:
			e := Entry{Cron: x.Expression, Dir: o.Dir}
			e.command(x.Command)
			entries = append(entries, e)
		}
	}
	return named(entries), left, nil
}

// YAML is the configuration of entries, with what was left as comments.
func YAML(entries []Entry, left []Left) ([]byte, error) {
	type command struct {
		Program string            `yaml:"program"`
		Args    []string          `yaml:"args,omitempty,flow"`
		Dir     string            `yaml:"dir,omitempty"`
		User    string            `yaml:"user,omitempty"`
		Env     map[string]string `yaml:"env,omitempty"`
	}
	type scheduled struct {
		Cron    string            `yaml:"cron"`
		Type    string            `yaml:"type"`
		Payload map[string]string `yaml:"payload,flow"`
	}
	commands, schedule := map[string]command{}, map[string]scheduled{}
	for _, e := range entries {
		commands[e.Name] = command{e.Program, e.Args, e.Dir, e.User, e.Env}
		schedule[e.Name] = scheduled{e.Cron, "command.run", map[string]string{"name": e.Name}}
	}
	var b bytes.Buffer
	for _, l := range left {
		fmt.Fprintf(&b, "# not imported: %.300q\n#   %s\n", l.Line, strings.ReplaceAll(l.Why, "\n", " "))
	}
	if len(entries) == 0 {
		return b.Bytes(), nil
	}
	w := yaml.NewEncoder(&b)
	w.SetIndent(2)
	err := w.Encode(map[string]any{"external": map[string]any{"commands": commands},
		"schedule": map[string]any{"entries": schedule}})
	return b.Bytes(), err
}
