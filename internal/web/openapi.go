package web

import (
	_ "embed"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/reference"
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

// described is the document for people, read when somebody first asks for it.
var described = sync.OnceValues(func() (*reference.Reference, error) { return reference.Read(document) })

// maxAsked is the longest text that is looked for on the API's page.
const maxAsked = 200

// apiPage is what the API's page shows.
type apiPage struct {
	*reference.Reference
	Query string
}

// docs is the description of the API for people.
func (s *Server) docs(c echo.Context) error {
	all, err := described()
	if err != nil {
		return err
	}
	query := redact.Clip(strings.TrimSpace(c.QueryParam("q")), maxAsked)
	v := s.pageView(c, "api", "api.title", apiPage{all.Find(query), query})
	v.Wide = true
	return s.write(c, http.StatusOK, "api", v)
}
