package analytics

import (
	_ "embed"
	"net/http"
	"strconv"
)

// script is what the site's pages load: it sends the page's address and the
// referrer, once a page, and again when a single-page site changes its address. It
// has 2 kB at most.
//
//go:embed collect.js
var script []byte

// ServeScript serves the script. Put into the theme:
//
//	<script defer src="https://jobs.example.com/collect.js"></script>
func ServeScript(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	w.Header().Set("Content-Length", strconv.Itoa(len(script)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	_, _ = w.Write(script) // a visitor who went away needs no answer
}
