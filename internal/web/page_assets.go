package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/labstack/echo/v4"
)

// asset is a file that pages load, under a path that changes with its content:
// browsers may keep it for ever.
type asset struct {
	jobType string
	data    []byte
}

// assets are files by "hash/name"; paths lead from a name to that.
type assets struct {
	files map[string]asset
	paths map[string]string
}

func loadAssets(files fs.FS) (assets, error) {
	a := assets{files: map[string]asset{}, paths: map[string]string{}}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		return a, err
	}
	for _, e := range entries {
		data, err := fs.ReadFile(files, path.Join("assets", e.Name()))
		if err != nil {
			return a, err
		}
		sum := sha256.Sum256(data)
		key := hex.EncodeToString(sum[:6]) + "/" + e.Name()
		jobType := mime.TypeByExtension(path.Ext(e.Name()))
		if strings.HasSuffix(e.Name(), ".js") {
			jobType = "text/javascript; charset=utf-8"
		}
		if jobType == "" {
			jobType = echo.MIMETextPlainCharsetUTF8
		}
		a.files[key], a.paths[e.Name()] = asset{jobType, data}, "/admin/assets/"+key
	}
	return a, nil
}

// path is where a page finds an asset; a wrong name stops the page.
func (a assets) path(name string) (string, error) {
	if p, ok := a.paths[name]; ok {
		return p, nil
	}
	return "", fmt.Errorf("there is no asset %q", name)
}

func (s *Server) asset(c echo.Context) error {
	file, ok := s.pages.assets.files[c.Param("*")]
	if !ok {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return c.Blob(http.StatusOK, file.jobType, file.data)
}

// mountPages adds what needs no authorization: the files of the pages and the way to them.
func (s *Server) mountPages() {
	s.echo.GET("/admin/assets/*", s.asset)
	s.echo.GET("/", func(c echo.Context) error { return c.Redirect(http.StatusFound, "/admin") })
}
