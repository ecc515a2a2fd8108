package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

type tokensPageData struct {
	Tokens []tokenRow
	// Secret is that of the token that was just made: this page alone has it.
	Secret  string
	Problem string
	Asked   TokenRequest // the form again, where it was refused
	Scopes  []access.Scope
	Types   []string
	Lives   []tokenLife
}

type tokenRow struct {
	access.Token
	Status string // valid, expired, revoked
}

// tokenLife is one choice of how long a token lives.
type tokenLife struct{ Value, Word string }

func tokenLives() []tokenLife {
	return []tokenLife{{"720h", "tokens.life.month"}, {"2160h", "tokens.life.quarter"}, {"8760h", "tokens.life.year"}, {"", "tokens.life.ever"}}
}

// Asks says whether the refused form asked for a scope or a type.
func (v tokensPageData) Asks(list []string, word any) bool {
	return slices.Contains(list, fmt.Sprint(word))
}

func (s *Server) tokensPageData(c echo.Context) (tokensPageData, error) {
	list, err := s.cfg.Gate.Store.Tokens(c.Request().Context())
	if err != nil {
		return tokensPageData{}, err
	}
	now := s.cfg.Now()
	rows := ops.Each(list, func(t access.Token) tokenRow { return tokenRow{t, tokenStatus(t, now)} })
	return tokensPageData{Tokens: rows, Asked: TokenRequest{Scopes: []string{"enqueue"}, ExpiresIn: "8760h"}, Scopes: access.AllScopes(), Types: s.cfg.Registry.Types(), Lives: tokenLives()}, nil
}

func tokenStatus(t access.Token, now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now):
		return "expired"
	}
	return "valid"
}

func (s *Server) tokensPage(c echo.Context) error {
	v, err := s.tokensPageData(c)
	if err != nil {
		return err
	}
	return s.show(c, "tokens", "tokens.title", v)
}

// tokenByForm makes a token. Its secret is in this answer only: no redirection
// could carry it.
func (s *Server) tokenByForm(c echo.Context) error {
	form, err := c.FormParams()
	if err != nil {
		return httpError(http.StatusBadRequest, "The form cannot be read.")
	}
	asked := TokenRequest{Name: strings.TrimSpace(form.Get("name")), Scopes: form["scope"], Types: form["type"], ExpiresIn: form.Get("life")}
	made, err := s.makeToken(c, asked)
	status, problem := http.StatusOK, ""
	if err != nil {
		p := s.problemOf(err)
		if status = p.Status; status >= http.StatusInternalServerError {
			return err
		}
		problem = p.in(s.printer(c))
	}
	v, err := s.tokensPageData(c)
	if err != nil {
		return err
	}
	if v.Secret, v.Problem = made.Secret, problem; problem != "" {
		v.Asked = asked
	}
	pageData := s.pageView(c, "tokens", "tokens.title", v)
	pageData.Here = "/admin/tokens"
	return s.write(c, status, "tokens", pageData)
}

func (s *Server) revokeTokenByForm(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if yes, err := s.sure(c, s.printer(c).Text("tokens.revoke.ask", id), ""); !yes || err != nil {
		return err
	}
	if err := s.cfg.Gate.Store.RevokeToken(c.Request().Context(), id); err != nil {
		return err
	}
	return s.back(c, "/admin/tokens", "tokens.revoked")
}
