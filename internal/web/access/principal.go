package access

import (
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Scope is a right that a route asks for.
type Scope string

// The five scopes. Admin includes the others.
const (
	Read    Scope = "read"    // see jobs, schedules, logs
	Enqueue Scope = "enqueue" // put jobs into queues
	Work    Scope = "work"    // run jobs of types that a program registers
	Operate Scope = "operate" // retry, cancel, pause, run
	Admin   Scope = "admin"   // tokens, restore, deletion of backups, audit
)

// AllScopes lists the scopes, weakest first.
func AllScopes() []Scope { return []Scope{Read, Enqueue, Work, Operate, Admin} }

// Scopes are the rights of one principal.
type Scopes []Scope

// Has says whether s is among the scopes, or Admin is.
func (have Scopes) Has(s Scope) bool {
	return slices.Contains(have, s) || slices.Contains(have, Admin)
}

// ParseScopes reads scopes separated by spaces or commas.
func ParseScopes(text string) (Scopes, error) {
	var scopes Scopes
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		s := Scope(word)
		if !slices.Contains(AllScopes(), s) {
			return nil, phrase.Errorf("no scope is named %q; scopes are %v", word, AllScopes())
		}
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes, nil
}

// String separates the scopes by spaces.
func (have Scopes) String() string {
	words := make([]string, len(have))
	for i, s := range have {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}

// Role is what a person may do.
type Role string

// The three roles.
const (
	Viewer        Role = "viewer"   // read
	Operator      Role = "operator" // read, enqueue, operate
	Administrator Role = "admin"    // everything
)

// Roles lists the roles, weakest first.
func Roles() []Role { return []Role{Viewer, Operator, Administrator} }

// Scopes of the role; none for an unknown one.
func (r Role) Scopes() Scopes {
	switch r {
	case Viewer:
		return Scopes{Read}
	case Operator:
		return Scopes{Read, Enqueue, Operate}
	case Administrator:
		return Scopes{Admin}
	}
	return nil
}

// Principal is who makes a request.
type Principal struct {
	// Name is the account's login or the token's name, "" for nobody.
	Name string
	// Via says how they proved it: "token <id>", "session", "basic", "" for nobody.
	Via    string
	Scopes Scopes
	// Types are the only types whose jobs it may make run; empty means any.
	Types []string
}

// Known says whether the principal proved who they are.
func (p Principal) Known() bool { return p.Via != "" }
