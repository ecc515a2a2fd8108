package web

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
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
	return c.Blob(http.StatusOK, "application/json", s.openAPIBased(document))
}

var docsPage = template.Must(template.New("docs").Funcs(template.FuncMap{"fields": fieldNames}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>cmsjobs API</title><link rel="stylesheet" href="{{.CSS}}"></head>
<body><div class="page"><main><h1>cmsjobs API</h1>
<p>Each answer is JSON unless said otherwise; refusals are problem documents (RFC 9457).
The whole description with all fields: <a href="/api/openapi.json">openapi.json</a>.</p>
<p class="row wrap">{{range .Areas}}<a href="#{{.Name}}">{{.Name}}</a> {{end}}</p>
{{range .Areas}}<h2 id="{{.Name}}">{{.Name}}</h2>
<div class="card"><div class="tbl-scroll"><table class="tbl">
<thead><tr><th scope="col">Call</th><th scope="col">Scope</th><th scope="col">What it does</th>
<th scope="col">Parameters</th><th scope="col">Body</th></tr></thead><tbody>
{{range .Routes}}<tr><td><code>{{.Method}} {{.Path}}</code></td><td>{{or .Scope "none"}}</td>
<td>{{.Summary}}</td><td>{{range .Query}}<code>{{.}}</code> {{end}}</td>
<td>{{range fields .Body}}<code>{{.}}</code> {{end}}</td></tr>
{{end}}</tbody></table></div></div>
{{end}}</main></div></body></html>
`))

// area is the routes whose names begin alike.
type area struct {
	Name   string
	Routes []Route
}

func (s *Server) areas() []area {
	var list []area
	for _, r := range s.routes {
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

// fieldNames are the JSON names of a body's fields, in order.
func fieldNames(body any) (names []string) {
	t := reflect.TypeOf(body)
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func (s *Server) docs(c echo.Context) error {
	css, err := s.pages.assets.path("admin.css")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := docsPage.Execute(&out, map[string]any{"CSS": css, "Areas": s.areas()}); err != nil {
		return fmt.Errorf("filling in the API's page: %w", err)
	}
	return c.HTMLBlob(http.StatusOK, s.based(out.Bytes()))
}
