package web

import (
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// document is the OpenAPI description of all routes. A test makes it from
// routes() and fails when the file is old (go test ./internal/web -update).
//
//go:embed openapi.json
var document []byte

func (s *Server) openAPI(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
	return c.Blob(http.StatusOK, "application/json", document)
}

var docsPage = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>cmsjobs API</title></head>
<body><h1>cmsjobs API</h1>
<p>Each answer is JSON unless said otherwise; refusals are problem documents (RFC 9457). The whole description with all fields: <a href="/api/openapi.json">openapi.json</a>.</p>
{{range .}}<h2 id="{{.Name}}">{{.Name}}</h2>
<table><thead><tr><th scope="col">Call</th><th scope="col">Scope</th><th scope="col">What it does</th><th scope="col">Parameters</th></tr></thead><tbody>
{{range .Routes}}<tr><td><code>{{.Method}} {{.Path}}</code></td><td>{{or .Scope "none"}}</td><td>{{.Summary}}</td><td>{{range .Query}}<code>{{.}}</code> {{end}}</td></tr>
{{end}}</tbody></table>
{{end}}</body></html>
`))

// area is the routes whose names begin alike.
type area struct {
	Name   string
	Routes []route
}

func areas() []area {
	var list []area
	for _, r := range routes() {
		if r.Page {
			continue
		}
		name, _, _ := strings.Cut(r.Name, ".")
		i := slices.IndexFunc(list, func(a area) bool { return a.Name == name })
		if i < 0 {
			list, i = append(list, area{Name: name}), len(list)
		}
		list[i].Routes = append(list[i].Routes, r)
	}
	return list
}

func (s *Server) docs(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8)
	c.Response().WriteHeader(http.StatusOK)
	return docsPage.Execute(c.Response(), areas())
}
