package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cmsjobs/cmsjobs/internal/schema"
)

// Registry knows which types can run here. It is filled at start and read from
// then on; filling it while it is read is not safe.
//
// Types that others run (SetElsewhere) may change at any time.
type Registry struct {
	entries   map[string]Entry
	aliases   map[string]string
	elsewhere atomic.Pointer[map[string]Entry]
	keys      FieldKeys // nil: nothing is encrypted
}

// NewRegistry returns a registry without types.
func NewRegistry() *Registry {
	return &Registry{entries: map[string]Entry{}, aliases: map[string]string{}}
}

func (r *Registry) add(e Entry) {
	if _, taken := r.entries[e.Type]; taken || e.Type == "" {
		panic(fmt.Sprintf("jobs: type %q is registered twice or has no name", e.Type))
	}
	r.entries[e.Type] = e
}

// Alias makes jobs that say alias run as type (email.send is
// mail.send). It panics when type is not registered.
func (r *Registry) Alias(alias, kind string) {
	if _, known := r.entries[kind]; !known {
		panic(fmt.Sprintf("jobs: alias %q for the unknown type %q", alias, kind))
	}
	r.aliases[alias] = kind
}

// Lookup finds a type by its name or by an alias of it.
func (r *Registry) Lookup(name string) (Entry, bool) {
	if kind, ok := r.aliases[name]; ok {
		name = kind
	}
	e, ok := r.entries[name]
	return e, ok
}

// OwnPath is a path of keys into the payload of a type, which may be an alias:
// the type's own name, and the fields' own names in place of synonyms and other
// spellings. Of a type that is not here all stays as it is.
func (r *Registry) OwnPath(name string, at []string) (jobType string, own []string) {
	e, known := r.Lookup(name)
	if !known || e.Schema == nil {
		return name, at
	}
	return e.Type, e.Schema.OwnPath(at)
}

// Override changes the policy of a registered type, as configuration does.
func (r *Registry) Override(kind string, change func(Policy) Policy) error {
	e, ok := r.entries[kind]
	if !ok {
		if near := schema.Nearest(kind, r.Types()); near != "" {
			return fmt.Errorf("no type is named %q; did you mean %q?", kind, near)
		}
		return fmt.Errorf("no type is named %q; known are %s", kind, strings.Join(r.Types(), ", "))
	}
	e.Policy = change(e.Policy).withDefaults()
	r.entries[kind] = e
	return nil
}

// Types lists the names of all types, sorted, without aliases.
func (r *Registry) Types() []string {
	names := make([]string, 0, len(r.entries))
	for name := range r.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Aliases lists the other names of a type, sorted.
func (r *Registry) Aliases(jobType string) (names []string) {
	for alias, of := range r.aliases {
		if of == jobType {
			names = append(names, alias)
		}
	}
	slices.Sort(names)
	return names
}

// Names lists types and aliases, sorted: every name that a row may carry.
func (r *Registry) Names() []string {
	names := r.Types()
	for alias := range r.aliases {
		names = append(names, alias)
	}
	slices.Sort(names)
	return names
}

// SetElsewhere says which types the workers of other programs have announced:
// they can be enqueued, shown and retried here, but nothing here runs them. What
// this registry has itself stays its own. It may be called while the registry is
// read.
func (r *Registry) SetElsewhere(list []Entry) {
	all := make(map[string]Entry, len(list))
	for _, e := range list {
		if _, ours := r.Lookup(e.Type); ours || e.Type == "" {
			continue
		}
		e.Policy, e.Run = e.Policy.withDefaults(), nil
		all[e.Type] = e
	}
	r.elsewhere.Store(&all)
}

// Known finds a type that runs here (Lookup), or one that a worker of another
// program has announced.
func (r *Registry) Known(name string) (Entry, bool) {
	if e, ours := r.Lookup(name); ours {
		return e, true
	}
	if all := r.elsewhere.Load(); all != nil {
		e, announced := (*all)[name]
		return e, announced
	}
	return Entry{}, false
}

// Elsewhere lists the types of other programs by name.
func (r *Registry) Elsewhere() []Entry {
	all := r.elsewhere.Load()
	if all == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(*all), func(a, b Entry) int { return cmp.Compare(a.Type, b.Type) })
}

// KnownTypes lists the names of all types that are known, sorted.
func (r *Registry) KnownTypes() []string {
	names := r.Types()
	for _, e := range r.Elsewhere() {
		names = append(names, e.Type)
	}
	slices.Sort(names)
	return names
}

// FieldKeys encrypt and decrypt the members of payloads (package encryption). Data without
// encrypted members, and what is no object, stays as it is.
type FieldKeys interface {
	EncryptFields(data json.RawMessage, secret func(name string) bool) (json.RawMessage, error)
	DecryptFields(data json.RawMessage) (json.RawMessage, error)
}

// SetKeys makes the stores that use the registry write the encrypted fields of payloads with
// these keys, and the handlers read them. Without, fields are written as they come.
func (r *Registry) SetKeys(k FieldKeys) { r.keys = k }

// UseKeysOf makes a registry of one worker use the keys of the program's.
func (r *Registry) UseKeysOf(program *Registry) { r.keys = program.keys }

// Encrypted is the payload of a type as it is stored: fields that its schema calls
// encrypted are.
func (r *Registry) Encrypted(jobType string, data json.RawMessage) (json.RawMessage, error) {
	e, known := r.Known(jobType)
	if r.keys == nil || !known || !e.Schema.HasEncrypted() {
		return data, nil
	}
	data, err := r.keys.EncryptFields(data, e.Schema.IsEncrypted)
	if err != nil {
		return nil, fmt.Errorf("encrypting the payload of %s: %w", jobType, err)
	}
	return data, nil
}

// Decrypted is a stored payload as its handler reads it.
func (r *Registry) Decrypted(jobType string, data json.RawMessage) (json.RawMessage, error) {
	if r.keys == nil {
		return data, nil
	}
	data, err := r.keys.DecryptFields(data)
	if err != nil {
		return nil, fmt.Errorf("reading the payload of %s: %w", jobType, err)
	}
	return data, nil
}
