package importer

import (
	"fmt"
	"slices"
	"time"
)

// Config reads values of a site's config files without running PHP; package
// cms/laravel does.
type Config interface {
	Has(file string) bool
	// Keys are those of an array; nil where it is none, or cannot be read.
	Keys(file string, keys ...string) []string
	Value(file string, keys ...string) (any, error)
}

// horizonFile is config/horizon.php.
const horizonFile = "horizon"

// The bounds of a Horizon configuration, and the largest niceness.
const maxSupervisors, maxQueues, mostNice, maxSilenced = 100, 100, 19, 200

// Horizon adds the supervisors of config/horizon.php for an environment (APP_ENV).
func (p *Plan) Horizon(c Config, environment string) {
	if !c.Has(horizonFile) {
		return
	}
	names := c.Keys(horizonFile, "environments", environment)
	if names == nil {
		environment = "*"
		names = c.Keys(horizonFile, "environments", environment)
	}
	defaults := c.Keys(horizonFile, "defaults")
	for _, name := range defaults { // Horizon runs them in each environment
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names[:min(len(names), maxSupervisors)] {
		p.supervisor(supervisor{c, environment, name, slices.Contains(defaults, name)})
	}
	p.silenced(c)
}

// silenced adds the classes that Horizon does not list.
func (p *Plan) silenced(c Config) {
	for _, key := range c.Keys(horizonFile, "silenced") {
		switch class, err := c.Value(horizonFile, "silenced", key); {
		case err != nil || len(p.Silenced) >= maxSilenced:
			p.note("config/horizon.php silences classes that were not taken over: name them in php.silenced")
		default:
			if name := fmt.Sprint(class); !slices.Contains(p.Silenced, name) {
				p.Silenced = append(p.Silenced, name)
			}
		}
	}
	if len(c.Keys(horizonFile, "silenced_tags")) > 0 {
		p.note("config/horizon.php silences tags, for which there is no setting: name the classes in php.silenced")
	}
}

// supervisor is one of Horizon's: what the environment says of it, then its defaults.
type supervisor struct {
	Config
	environment, name string
	hasDefaults       bool
}

func (s supervisor) value(key string) any {
	if v, err := s.Value(horizonFile, "environments", s.environment, s.name, key); err == nil && v != nil {
		return v
	}
	if v, err := s.Value(horizonFile, "defaults", s.name, key); err == nil && s.hasDefaults {
		return v
	}
	return nil
}

func (s supervisor) number(key string) int {
	switch n := s.value(key).(type) {
	case int:
		if n > 0 && n <= maxNumber {
			return n
		}
	case string:
		return number(n)
	}
	return 0
}

// queues are the supervisor's, which are a list or a text.
func (s supervisor) queues() (list []string) {
	for _, at := range [][]string{{"environments", s.environment, s.name, "queue"}, {"defaults", s.name, "queue"}} {
		for _, key := range s.Keys(horizonFile, at...) {
			if v, err := s.Value(horizonFile, append(slices.Clone(at), key)...); err == nil && len(list) < maxQueues {
				list = append(list, fmt.Sprint(v))
			}
		}
		if list != nil {
			return list
		}
	}
	if text, is := s.value("queue").(string); is {
		return []string{text}
	}
	return []string{"default"}
}

func (p *Plan) supervisor(s supervisor) {
	from := "config/horizon.php, " + s.name
	if connection, is := s.value("connection").(string); is && connection != "database" && p.Connection != connection {
		p.note("%s is of the connection %q: dispatch its jobs to the connection database, or they are not run here",
			from,
			connection)
	}
	q := Queue{Processes: max(s.number("maxProcesses"), s.number("processes"), 1), Least: s.number("minProcesses"),
		MemoryMiB: s.number("memory"), MaxJobs: s.number("maxJobs"),
		MaxTime: time.Duration(s.number("maxTime")) * time.Second, Nice: min(s.number("nice"), mostNice)}
	if s.value("tries") != nil {
		tries := s.number("tries")
		q.Tries = &tries
	}
	if s.value("timeout") != nil {
		limit := time.Duration(s.number("timeout")) * time.Second
		q.Timeout = &limit
	}
	queues := s.queues()
	total := q.Processes
	for i, name := range queues {
		q.Name = name
		q.Processes = max((total+len(queues)-1-i)/len(queues), 1)
		p.add(from, q)
	}
}
