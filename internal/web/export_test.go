package web

// For tests of the whole table of routes.
type Route = route

var Routes = routes

func (r route) Changes() bool { return r.changes() }

var Catalogues = catalogues

var RefusalsVI = errorsVI
