package doctor

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

// checkPHPPools looks for what else works on the queues whose jobs of PHP are run here.
func checkPHPPools(ctx context.Context, r *app.Services) ([]Finding, error) {
	c := r.Config.PHP
	if !c.Enabled {
		return nil, nil
	}
	var found []Finding
	connection := r.Site.Env.String("QUEUE_CONNECTION", c.Connection)
	if connection != c.Connection {
		found = append(found, warn("", "PHP's jobs go to the connection %s (QUEUE_CONNECTION), and those of %s are "+
			"run here", connection, c.Connection).by("set QUEUE_CONNECTION=%s in the site's .env, and "+
			"php.connection if it has another name", c.Connection))
	}
	list, err := phpWorkers(ctx)
	if err != nil {
		return append(found, ok("not known which PHP workers run on this host: %v", err)), nil
	}
	for _, w := range list {
		if !w.ofSite(r.Config.ArtisanFile()) || w.connection != "" && w.connection != c.Connection {
			continue
		}
		if w.connection == "" && connection != c.Connection {
			continue // it works on the site's other connection
		}
		if w.command == "horizon" {
			found = append(found, warn("stop it when the last jobs in Redis are done", "Horizon runs on this host "+
				"(process %d): it works on Redis, not on the jobs table", w.pid))
			continue
		}
		shared := slices.DeleteFunc(slices.Sorted(maps.Keys(c.Queues)), func(name string) bool {
			return !slices.Contains(w.queues, name)
		})
		if len(shared) > 0 {
			found = append(found, warn("stop it in Supervisor, systemd or the crontab; or take the queue out of "+
				"php.queues", "%s listens to %s, too (process %d): the jobs that it takes are neither measured nor "+
				"shown here", w.command, strings.Join(shared, ", "), w.pid))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("no other PHP worker of this host listens to %s",
			strings.Join(slices.Sorted(maps.Keys(c.Queues)), ", ")))
	}
	return found, nil
}

// phpWorker is a process that works on queues of Laravel.
type phpWorker struct {
	pid        int
	artisan    string // as the command line has it
	dir        string // where it runs; "" is not known
	command    string // queue:work, queue:listen, horizon
	connection string // "" is the site's default
	queues     []string
}

// phpWorkers lists those of this host, but for cmsjobs's own.
func phpWorkers(ctx context.Context) (list []phpWorker, err error) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, name := range names {
		data, _ := os.ReadFile(name) // it has ended
		if w, is := parsePHPWorker(strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")); is {
			w.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(name)))
			w.dir, _ = os.Readlink(filepath.Join(filepath.Dir(name), "cwd")) // another account's
			list = append(list, w)
		}
	}
	if len(names) > 0 {
		return list, nil
	}
	out, err := exec.CommandContext(ctx, "ps", "-axww", "-o", "pid=,args=").Output()
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if w, is := parsePHPWorker(fields[1:]); is {
			w.pid, _ = strconv.Atoi(fields[0])
			list = append(list, w)
		}
	}
	return list, nil
}

// parsePHPWorker reads a command line; is says whether it is that of a worker.
func parsePHPWorker(args []string) (w phpWorker, is bool) {
	i := slices.IndexFunc(args, func(arg string) bool { return filepath.Base(arg) == "artisan" })
	if i < 0 || i+1 >= len(args) {
		return w, false
	}
	w.artisan, w.command = args[i], args[i+1]
	if !slices.Contains([]string{"queue:work", "queue:listen", "horizon"}, w.command) {
		return w, false
	}
	queues := "default"
	for rest := args[i+2:]; len(rest) > 0; rest = rest[1:] {
		name, value, joined := strings.Cut(rest[0], "=")
		if !joined && len(rest) > 1 && (name == "--queue" || name == "--name") {
			value, rest = rest[1], rest[1:]
		}
		switch {
		case name == "--name" && value == "cmsjobs":
			return w, false
		case name == "--queue" && value != "":
			queues = value
		case !strings.HasPrefix(name, "-") && w.connection == "":
			w.connection = name
		}
	}
	w.queues = strings.Split(queues, ",")
	return w, true
}

// ofSite says whether the worker is, or may be, of the site with this artisan: also one of
// an earlier release beside it.
func (w *phpWorker) ofSite(artisan string) bool {
	theirs := w.artisan
	if !filepath.IsAbs(theirs) {
		if w.dir == "" {
			return true
		}
		theirs = filepath.Join(w.dir, theirs)
	}
	a, b := realFolder(theirs), realFolder(artisan)
	return a == b || filepath.Base(filepath.Dir(a)) == "releases" && filepath.Dir(a) == filepath.Dir(b)
}

// realFolder is the folder of a file without symbolic links, as far as it exists.
func realFolder(file string) string {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return filepath.Dir(file)
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		return target
	}
	return dir
}
