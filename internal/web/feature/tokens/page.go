package tokens

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
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
	return []tokenLife{{"720h", "tokens.life.month"}, {"2160h", "tokens.life.quarter"}, {"8760h", "tokens.life.year"},
		{"", "tokens.life.ever"}}
}

// Asks says whether the refused form asked for a scope or a type.
func (v tokensPageData) Asks(list []string, word any) bool {
	return slices.Contains(list, fmt.Sprint(word))
}

func tokensData(req *web.Request) (tokensPageData, error) {
	list, err := req.Gate().Store.Tokens(req.Ctx())
	if err != nil {
		return tokensPageData{}, err
	}
	now := req.Now()
	rows := ops.Each(list, func(t access.Token) tokenRow { return tokenRow{t, tokenStatus(t, now)} })
	return tokensPageData{Tokens: rows, Asked: TokenRequest{Scopes: []string{"enqueue"}, ExpiresIn: "8760h"},
		Scopes: access.AllScopes(), Types: req.Registry().KnownTypes(), Lives: tokenLives()}, nil
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

func tokensPage(req *web.Request) error {
	v, err := tokensData(req)
	if err != nil {
		return err
	}
	return req.Show(web.PageView{Name: "tokens", Data: v, Ready: true})
}

// tokenByForm makes a token. Its secret is in this answer only: no redirection
// could carry it.
func tokenByForm(req *web.Request) error {
	form, err := req.FormParams()
	if err != nil {
		return web.Refuse(http.StatusBadRequest, "The form cannot be read.")
	}
	asked := TokenRequest{Name: strings.TrimSpace(form.Get("name")), Scopes: form["scope"], Types: form["type"],
		ExpiresIn: form.Get("life")}
	made, err := makeToken(req, asked)
	status, problem := http.StatusOK, ""
	if err != nil {
		var ours bool
		if status, problem, ours = req.Refusal(err); ours {
			return err
		}
	}
	v, err := tokensData(req)
	if err != nil {
		return err
	}
	if v.Secret, v.Problem = made.Secret, problem; problem != "" {
		v.Asked = asked
	}
	return req.Show(web.PageView{Name: "tokens", Data: v, Ready: true, Status: status, Here: "/admin/tokens"})
}

func revokeTokenByForm(req *web.Request) error {
	id, err := req.ID()
	if err != nil {
		return err
	}
	if yes, err := req.Sure(req.Printer().Text("tokens.revoke.ask", id), ""); !yes || err != nil {
		return err
	}
	if err := req.Gate().Store.RevokeToken(req.Ctx(), id); err != nil {
		return err
	}
	return req.Back("/admin/tokens", "tokens.revoked")
}
