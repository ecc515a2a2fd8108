package importer

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bounds of a file of Supervisor's.
const (
	MaxFile     = 1 << 20
	maxPrograms = 500
	maxNumber   = 1_000_000
)

// ErrTooLarge says that a file is larger than any of Supervisor's.
var ErrTooLarge = errors.New("the file is too large for a configuration of Supervisor's")

// program is a section [program:NAME].
type program struct {
	name string
	keys map[string]string
}

// programs reads the sections of a file: "key = value" lines, comments after ; and #,
// values that go on in indented lines.
func programs(text string) (list []program, err error) {
	if len(text) > MaxFile {
		return nil, ErrTooLarge
	}
	var current *program
	last := ""
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		body, _, _ := strings.Cut(line, " ;") // supervisord wants a space before a comment
		word := strings.TrimSpace(body)
		switch {
		case word == "" || word[0] == ';' || word[0] == '#':
			continue
		case word[0] == '[':
			current, last = nil, ""
			if name, is := strings.CutPrefix(strings.TrimSuffix(word, "]"), "[program:"); is {
				if len(list) == maxPrograms {
					return nil, ErrTooLarge
				}
				list = append(list, program{strings.TrimSpace(name), map[string]string{}})
				current = &list[len(list)-1]
			}
		case current == nil:
		case (line[0] == ' ' || line[0] == '\t') && last != "":
			current.keys[last] += " " + word
		default:
			key, value, found := strings.Cut(word, "=")
			if !found {
				key, value, found = strings.Cut(word, ":")
			}
			if last = ""; found {
				last = strings.ToLower(strings.TrimSpace(key))
				current.keys[last] = strings.TrimSpace(value)
			}
		}
	}
	return list, nil
}

// words splits a command as a shell does: white space, quotes, backslashes.
func words(command string) (list []string) {
	var b strings.Builder
	var quote byte
	inside := false
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == '\\' && quote != '\'' && i+1 < len(command):
			i++
			b.WriteByte(command[i])
			inside = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inside = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if inside {
				list = append(list, b.String())
				b.Reset()
			}
			inside = false
		default:
			b.WriteByte(c)
			inside = true
		}
	}
	if inside {
		list = append(list, b.String())
	}
	return list
}

// Supervisor adds the workers of a file of Supervisor's to the plan: its programs
// that run queue:work or queue:listen.
func (p *Plan) Supervisor(file, text string) error {
	list, err := programs(text)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	for _, x := range list {
		p.program(fmt.Sprintf("%s, %s", path.Base(file), x.name), x)
	}
	return nil
}

// program adds one program.
func (p *Plan) program(from string, x program) {
	w, is := workerOf(words(x.keys["command"]))
	switch {
	case w.horizon:
		p.note("%s runs Horizon: its workers are in config/horizon.php; stop the program when cmsjobs runs", from)
		return
	case !is:
		return
	case w.connection != "" && w.connection != "database" && p.Connection != w.connection &&
		!databaseName(w.connection):
		p.note("%s is of the connection %q, not of the database's queue: left out", from, w.connection)
		return
	}
	p.Connection, p.Binary, p.Artisan = first(p.Connection, w.connection), first(p.Binary, w.binary),
		first(p.Artisan, artisanOf(w.artisan, x.keys["directory"]))
	if user := x.keys["user"]; user != "" {
		p.note("%s ran as the user %s: cmsjobs must run as this user, or files have the wrong owner", from, user)
	}
	for _, name := range w.unknown {
		p.note("%s: the option %s has no setting here", from, name)
	}
	names := strings.Split(first(w.queues, "default"), ",")
	if len(names) > 1 {
		p.note("%s takes %s before the queues behind it; here each queue has its own processes", from,
			strings.TrimSpace(names[0]))
	}
	total := max(number(x.keys["numprocs"]), 1)
	for i, name := range names {
		q := w.Queue
		q.Name = strings.TrimSpace(name)
		q.Processes = max((total+len(names)-1-i)/len(names), 1)
		if q.Name != "" {
			p.add(from, q)
		}
	}
}

// databaseName says whether a connection's name is one of a database's queue by its
// name: Laravel's own is "database".
func databaseName(name string) bool { return strings.HasPrefix(name, "database") }

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// artisanOf is the path of artisan where it is absolute, or the directory says it.
func artisanOf(file, directory string) string {
	switch {
	case path.IsAbs(file):
		return file
	case path.IsAbs(directory) && file != "":
		return path.Join(directory, file)
	}
	return ""
}

// number is a number from 0, 0 where it is none.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 || n > maxNumber {
		return 0
	}
	return n
}

// worker is a command "php artisan queue:work …".
type worker struct {
	Queue
	binary, artisan, connection, queues string
	unknown                             []string
	horizon                             bool
}

// workerOf reads a command; is says that it is a worker.
func workerOf(command []string) (w worker, is bool) {
	at := slices.IndexFunc(command, func(word string) bool {
		return word == "queue:work" || word == "queue:listen" || word == "horizon"
	})
	if at < 1 || path.Base(command[at-1]) != "artisan" {
		return w, false
	}
	w.artisan, w.horizon = command[at-1], command[at] == "horizon"
	if at > 1 {
		w.binary = binaryOf(command[at-2])
	}
	w.arguments(command[at+1:])
	return w, true
}

// binaryOf is the PHP program where it is not just php.
func binaryOf(program string) string {
	if path.IsAbs(program) || program != "php" && strings.HasPrefix(program, "php") {
		return program
	}
	return ""
}

// arguments reads the connection and the options behind the command's name.
func (w *worker) arguments(rest []string) {
	for i := 0; i < len(rest); i++ {
		name, value, given := strings.Cut(rest[i], "=")
		if !strings.HasPrefix(name, "--") {
			if w.connection == "" && !strings.HasPrefix(name, "-") {
				w.connection = name
			}
			continue
		}
		if !given && takesValue(name) && i+1 < len(rest) {
			i++
			value = rest[i]
		}
		w.option(name, value)
	}
}

// takesValue says whether an option is followed by its value.
func takesValue(name string) bool {
	switch name {
	case "--queue", "--tries", "--timeout", "--memory", "--sleep", "--max-jobs", "--max-time", "--backoff", "--delay",
		"--rest", "--name", "--env":
		return true
	}
	return false
}

func (w *worker) option(name, value string) {
	n := number(value)
	switch name {
	case "--queue":
		w.queues = value
	case "--tries":
		w.Tries = &n
	case "--timeout":
		d := time.Duration(n) * time.Second
		w.Timeout = &d
	case "--memory":
		w.MemoryMiB = n
	case "--max-jobs":
		w.MaxJobs = n
	case "--max-time":
		w.MaxTime = time.Duration(n) * time.Second
	case "--sleep", "--daemon", "--quiet", "--name", "--no-interaction", "--ansi", "--no-ansi", "--verbose":
		// jobs are handed out at once, and the rest changes nothing
	default:
		w.unknown = append(w.unknown, name)
	}
}
