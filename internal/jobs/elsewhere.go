package jobs

import (
	"cmp"
	"maps"
	"slices"
)

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
