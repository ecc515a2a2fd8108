package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

const prefixOfEnv = "CMSJOBS_"

// setting is one value of a layer, before it is decoded.
type setting struct {
	path   string // with slashes
	value  any
	origin string
}

// isolate are variables with our prefix that are no keys of the configuration:
// the file's own place, and what the tests of the project read.
var isolate = []string{"CMSJOBS_CONFIG", "CMSJOBS_FIXTURES", "CMSJOBS_SOAK", "CMSJOBS_BENCH"}

// ownEnvironment reads CMSJOBS_* variables. NAME_FILE names a file that holds
// the value, as container platforms hand out secrets.
func ownEnvironment(environ []string, all []field, r *report) []setting {
	byName := map[string]field{}
	var names []string
	for _, f := range all {
		if !strings.Contains(f.path, anyName) && !f.open() {
			byName[envName(f.path)] = f
			names = append(names, envName(f.path))
		}
	}
	var layer []setting
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, prefixOfEnv) || slices.Contains(isolate, name) ||
			strings.HasPrefix(name, "CMSJOBS_TEST_") {
			continue
		}
		if f, known := byName[name]; known {
			layer = append(layer, setting{f.path, value, "environment " + name})
			continue
		}
		if f, known := byName[strings.TrimSuffix(name, "_FILE")]; known {
			content, err := os.ReadFile(value)
			if err != nil {
				r.faults = append(r.faults,
					Fault{Problem: fmt.Sprintf("%s names a file that cannot be read: %v", name, err)})
				continue
			}
			layer = append(layer, setting{f.path, strings.TrimRight(string(content), "\r\n"), "file of " + name})
			continue
		}
		r.faults = append(r.faults, Fault{Problem: fmt.Sprintf("the environment has %s, which sets nothing%s", name,
			meant(suggestion(name, names)))})
	}
	return layer
}

// namesOfSpecifications are the variables that the specifications name.
// Bare numbers get the unit that the specification gives them.
var namesOfSpecifications = []struct{ name, path, unit string }{
	{"JOBS_ENABLED", "queue/enabled", ""},
	{"JOBS_POLL_INTERVAL_MS", "queue/poll", "ms"},
	{"JOBS_WORKER_ID", "queue/worker_id", ""},
	{"QUEUE_WORKER_WAIT_TIME", "queue/poll_first", "ms"},
	{"QUEUE_WORKER_REFRESH_INTERVAL", "queue/refresh", "s"},
	{"QUEUE_WORKER_HEARTBEAT_STALE", "queue/heartbeat_stale", "s"},
	{"QUEUE_JOB_ROTATE_COMPLETE_DAYS", "queue/keep_completed", "d"},
	{"QUEUE_JOB_ROTATE_FAILED_DAYS", "queue/keep_failed", "d"},
	{"ENABLE_WORKER", "queue/worker", ""},
}

func specifiedEnvironment(environ []string) []setting {
	var layer []setting
	for _, n := range namesOfSpecifications {
		for _, variable := range environ {
			name, value, _ := strings.Cut(variable, "=")
			if name != n.name || value == "" {
				continue
			}
			if n.unit != "" && strings.Trim(value, "0123456789.") == "" {
				value += n.unit
			}
			layer = append(layer, setting{n.path, value, "environment " + name})
			if n.path == "queue/poll" {
				layer = append(layer, pollFirstBelow(value, "environment "+name)...)
			}
		}
	}
	return layer
}

// pollFirstBelow keeps the first wait at or under a longest wait that was made
// shorter than it: who asks for a poll every 100 ms means both.
func pollFirstBelow(longest, origin string) []setting {
	if d, err := timespan.Parse(longest); err == nil && d > 0 && d < defaultQueue().PollFirst {
		return []setting{{"queue/poll_first", longest, origin}}
	}
	return nil
}

// fromFile reads the YAML file. Keys that nobody knows are faults.
func fromFile(path string, all []field, r *report) (yamlFile, error) {
	var read yamlFile
	k := koanf.New(slash)
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return read, fmt.Errorf("there is no configuration file %s: name another with --config, or start with "+
				"config.example.yaml", path)
		}
		return read, fmt.Errorf("reading %s: %w", path, err)
	}
	for _, key := range slices.Sorted(keysOf(k)) {
		value := k.Get(key)
		if key == "sites" || strings.HasPrefix(key, "sites"+slash) {
			read.siteSetting(key, setting{key, value, "file " + path}, all, r)
			continue
		}
		if value == nil {
			continue // "key:" with nothing behind it says nothing
		}
		if !known(all, key) && !insidePayload(key) && !emptySection(all, key, value) {
			r.faults = append(r.faults, Fault{Path: dotted(key), Problem: "no such key" + meant(likely(key, all)),
				Origin: "file " + path})
			continue
		}
		if !emptySection(all, key, value) {
			read.shared = append(read.shared, setting{key, value, "file " + path})
		}
	}
	return read, nil
}

func keysOf(k *koanf.Koanf) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, key := range k.Keys() {
			if !yield(key) {
				return
			}
		}
	}
}

// insidePayload: a schedule entry's payload is the user's own.
func insidePayload(key string) bool {
	parts := strings.Split(key, slash)
	return len(parts) > 4 && parts[0] == "schedule" && parts[1] == "entries" && parts[3] == "payload"
}

// emptySection: "types: {}" and "types.name: {}" choose nothing.
func emptySection(all []field, key string, value any) bool {
	m, isMap := value.(map[string]any)
	return isMap && len(m) == 0 && slices.ContainsFunc(all, func(f field) bool {
		return strings.HasPrefix(f.path+slash, key+slash) || strings.HasPrefix(f.path, parentOf(key)+slash+anyName)
	})
}

func parentOf(key string) string {
	if i := strings.LastIndex(key, slash); i >= 0 {
		return key[:i]
	}
	return key
}

// likely is the key that was probably meant by one that nobody knows. Names
// that the user chose stay as they are.
func likely(key string, all []field) string {
	parts := strings.Split(key, slash)
	names := make([]string, len(all))
	for i, f := range all {
		want := strings.Split(f.path, slash)
		for j := range want {
			if want[j] == anyName && j < len(parts) {
				want[j] = parts[j]
			}
		}
		names[i] = strings.Join(want, ".")
	}
	return suggestion(dotted(key), names)
}

func meant(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + name + "?"
}

// merge lays one layer over what is there.
func merge(k *koanf.Koanf, layer []setting, origins map[string]string) error {
	values := map[string]any{}
	for _, s := range layer {
		values[s.path] = s.value
		origins[s.path] = s.origin
	}
	return k.Load(confmap.Provider(values, slash), nil)
}
