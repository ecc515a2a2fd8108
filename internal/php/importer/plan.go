package importer

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Queue is how the workers of one queue ran. Zero fields were not said: Laravel's
// defaults are ours.
type Queue struct {
	Name string
	// Processes is how many at most; Least is how many always run, where they varied.
	Processes, Least int
	Tries            *int
	Timeout          *time.Duration
	MemoryMiB        int
	MaxJobs          int
	MaxTime          time.Duration
	Nice             int
}

// Plan is what our settings are to say.
type Plan struct {
	Connection string // "" is Laravel's default
	Binary     string // "" is php
	Artisan    string // "" is the one in cms.dir
	Queues     []Queue
	Silenced   []string // classes whose completed jobs are not listed
	Notes      []string
}

func (p *Plan) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(p.Notes, text) {
		p.Notes = append(p.Notes, text)
	}
}

// add joins the workers of a queue with those that the plan has for it.
func (p *Plan) add(from string, q Queue) {
	i := slices.IndexFunc(p.Queues, func(x Queue) bool { return x.Name == q.Name })
	if i < 0 {
		p.Queues = append(p.Queues, q)
		return
	}
	old := &p.Queues[i]
	old.Processes, old.Least = old.Processes+q.Processes, old.Least+q.Least
	if !sameLimits(*old, q) {
		p.note("%s: the queue %s has workers with other limits, too; the first ones are taken", from, q.Name)
	}
}

func sameLimits(a, b Queue) bool {
	same := func(x, y *int) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	times := a.Timeout == nil && b.Timeout == nil || a.Timeout != nil && b.Timeout != nil && *a.Timeout == *b.Timeout
	return same(a.Tries, b.Tries) && times && a.MemoryMiB == b.MemoryMiB && a.MaxJobs == b.MaxJobs &&
		a.MaxTime == b.MaxTime && a.Nice == b.Nice
}

// Empty says that no worker of the database's queues was found.
func (p *Plan) Empty() bool { return len(p.Queues) == 0 }

// YAML is the plan as our configuration writes it.
func (p *Plan) YAML() string {
	var b strings.Builder
	b.WriteString("php:\n  enabled: true\n")
	for _, x := range [][2]string{{"binary", p.Binary}, {"artisan", p.Artisan}, {"connection", p.Connection}} {
		if x[1] != "" {
			fmt.Fprintf(&b, "  %s: %s\n", x[0], quoted(x[1]))
		}
	}
	if len(p.Silenced) > 0 {
		b.WriteString("  silenced:\n")
	}
	for _, class := range p.Silenced {
		fmt.Fprintf(&b, "    - %s\n", quoted(class))
	}
	b.WriteString("  queues:\n")
	for _, q := range p.Queues {
		fmt.Fprintf(&b, "    %s: {%s}\n", quoted(q.Name), strings.Join(q.fields(), ", "))
	}
	return b.String()
}

func (q Queue) fields() []string {
	most := max(q.Processes, 1)
	list := []string{fmt.Sprintf("processes: %d", most)}
	if least := max(q.Least, 1); q.Least > 0 && least < most {
		list[0] = fmt.Sprintf("processes: %d..%d", least, most)
	}
	if q.Tries != nil {
		list = append(list, fmt.Sprintf("tries: %d", *q.Tries))
	}
	if q.Timeout != nil {
		list = append(list, "timeout: "+length(*q.Timeout))
	}
	if q.MemoryMiB > 0 {
		list = append(list, fmt.Sprintf("memory: %dMiB", q.MemoryMiB))
	}
	if q.MaxJobs > 0 {
		list = append(list, fmt.Sprintf("max_jobs: %d", q.MaxJobs))
	}
	if q.MaxTime > 0 {
		list = append(list, "max_time: "+length(q.MaxTime))
	}
	if q.Nice > 0 {
		list = append(list, fmt.Sprintf("nice: %d", q.Nice))
	}
	return list
}

// length is a time as 90s, 5m or 1h.
func length(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// quoted is a text as YAML takes it, in quotes where it is no plain word.
func quoted(text string) string {
	plain := text != "" && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off"},
		strings.ToLower(text)) && strings.Trim(text, "0123456789.") != ""
	for _, r := range text {
		plain = plain && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_./", r) || r == '-' && text[0] != '-')
	}
	if plain {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
