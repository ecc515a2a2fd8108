package web

// Changes is for tests of the whole table of routes.
func (r Route) Changes() bool { return r.changes() }
