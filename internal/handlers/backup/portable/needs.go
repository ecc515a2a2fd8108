package portable

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// Needs is what a dump needs of the server that takes it. A backup keeps it where it
// can be read without opening the archive.
type Needs struct {
	Server     string   `json:"server"` // VERSION() of where it was made
	Collations []string `json:"collations,omitempty"`
	Engines    []string `json:"engines,omitempty"`
	Types      []string `json:"types,omitempty"` // of columns: "uuid"
	// Trusted are triggers and functions: a server with a binary log lets only
	// trusted accounts make them.
	Trusted []string `json:"trusted,omitempty"`
	// Triggered are the tables that have triggers.
	Triggered []string `json:"triggered,omitempty"`
	// Defined are views and stored programs, which have a definer.
	Defined []string `json:"defined,omitempty"`
	// Special is what only one of the two kinds knows: "sequence invoice".
	Special []string `json:"special,omitempty"`
	// Hidden are tables with invisible columns, which MariaDB would show.
	Hidden []string `json:"hidden,omitempty"`
}

var (
	collationFact = regexp.MustCompile(`\bcollation (\w+)`)
	engineFact    = regexp.MustCompile(`\bengine (\w+)`)
	triggerOn     = regexp.MustCompile("(?i)\\bON\\s+(`(?:[^`]|``)*`|\\w+)\\s+FOR\\s+EACH\\s")
	typeWord      = regexp.MustCompile(`^\w+`)
)

// Of reads from a dump's summary what it needs; nil where it states no objects.
func Of(s dump.Summary) *Needs {
	if len(s.Objects) == 0 {
		return nil
	}
	n := &Needs{Server: s.Server}
	sets := map[*[]string]map[string]bool{&n.Collations: {}, &n.Engines: {}, &n.Types: {}, &n.Trusted: {},
		&n.Triggered: {}, &n.Defined: {}, &n.Special: {}, &n.Hidden: {}}
	sets[&n.Collations][s.Collation] = true
	for _, o := range s.Objects {
		switch o.Kind {
		case "trigger", "function":
			sets[&n.Trusted][o.String()] = true
		case "sequence", "package", "package body":
			sets[&n.Special][o.String()] = true
		}
		if o.Kind != "table" && o.Kind != "sequence" {
			sets[&n.Defined][o.String()] = true
		}
		if m := triggerOn.FindStringSubmatch(o.Facts["text"]); o.Kind == "trigger" && m != nil {
			sets[&n.Triggered][strings.ReplaceAll(strings.Trim(m[1], "`"), "``", "`")] = true
		}
		for fact, how := range o.Facts {
			n.fact(sets, o, fact, how)
		}
	}
	for list, set := range sets {
		delete(set, "")
		*list = slices.Sorted(maps.Keys(set))
	}
	return n
}

// OfTables is what some of a dump's tables need with the triggers on them. What of the
// types and other special things is theirs a rehearsal shows.
func (n *Needs) OfTables(tables []string) *Needs {
	some := *n
	some.Special, some.Types, some.Hidden, some.Defined = nil, nil, nil, nil
	onThem := slices.ContainsFunc(tables, func(t string) bool { return slices.Contains(n.Triggered, t) })
	some.Trusted = slices.DeleteFunc(slices.Clone(n.Trusted), func(o string) bool {
		return !onThem || !strings.HasPrefix(o, "trigger ")
	})
	return &some
}

func (n *Needs) fact(sets map[*[]string]map[string]bool, o dump.Object, fact, how string) {
	what, _, _ := strings.Cut(fact, " ")
	switch {
	case what == "collation":
		sets[&n.Collations][how] = true
	case what == "options" && o.Kind == "table":
		if m := engineFact.FindStringSubmatch(how); m != nil {
			sets[&n.Engines][m[1]] = true
		}
		if strings.HasPrefix(how, "SYSTEM VERSIONED") {
			sets[&n.Special][o.String()+" (system versioned)"] = true
		}
	case what == "column":
		sets[&n.Types][strings.ToLower(typeWord.FindString(how))] = true
		if strings.Contains(how, "invisible") {
			sets[&n.Hidden][o.Name] = true
		}
	case what == "index" && strings.Contains(how, " expression "):
		sets[&n.Special][fmt.Sprintf("%s (the functional %s)", o, fact)] = true
	case fact == "also":
		sets[&n.Special][fmt.Sprintf("%s (%s)", o, how)] = true
	}
	if m := collationFact.FindStringSubmatch(how); m != nil && (what == "options" || what == "column") {
		sets[&n.Collations][m[1]] = true
	}
}
