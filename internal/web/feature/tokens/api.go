package tokens

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Token is shown as access keeps it.
type Token = access.Token

// TokenList is the answer of a list.
type TokenList = ops.Items[Token]

func listTokens(req *web.Request) error {
	list, err := req.Gate().Store.Tokens(req.Ctx())
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, TokenList{Items: list})
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`          // read, enqueue, work, operate, admin
	Types  []string `json:"types,omitempty"` // that it may enqueue or work on; empty: any
	// ExpiresIn is a length like 720h; empty: never.
	ExpiresIn string `json:"expires_in,omitempty"`
}

// TokenCreated is a new token with its secret.
type TokenCreated struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

func createToken(req *web.Request) error {
	var r TokenRequest
	if err := req.Decode(&r); err != nil {
		return err
	}
	made, err := makeToken(req, r)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusCreated, made)
}

// makeToken creates a token in the name of the caller.
func makeToken(req *web.Request, r TokenRequest) (TokenCreated, error) {
	scopes, err := access.ParseScopes(strings.Join(r.Scopes, " "))
	if err != nil {
		return TokenCreated{}, web.RefuseField(http.StatusUnprocessableEntity, "scopes", "%s",
			web.Spoken{Err: err})
	}
	t := access.Token{Name: r.Name, Scopes: scopes, Types: r.Types, CreatedBy: req.Caller().Name}
	if r.ExpiresIn != "" {
		life, err := time.ParseDuration(r.ExpiresIn)
		if err != nil || life <= 0 {
			return TokenCreated{}, web.RefuseField(http.StatusUnprocessableEntity, "expires_in",
				"expires_in is a length like 720h, not %q.", redact.Clip(r.ExpiresIn, 40))
		}
		t.ExpiresAt = req.Now().Add(life)
	}
	for _, jobType := range r.Types {
		if !req.Known(jobType) && !scopes.Has(access.Work) { // a worker's types are known when it registers
			return TokenCreated{}, web.RefuseField(http.StatusUnprocessableEntity, "types",
				"There is no type %q here.", redact.Clip(jobType, 60))
		}
	}
	t, secret, err := req.Gate().Store.CreateToken(req.Ctx(), t)
	if err != nil {
		return TokenCreated{}, err
	}
	req.Audit(t.ID, fmt.Sprintf("%s: %s %v", t.Name, t.Scopes, t.Types))
	return TokenCreated{t, secret}, nil
}

func revokeToken(req *web.Request) error {
	id, err := req.ID()
	if err != nil {
		return err
	}
	if err := req.Gate().Store.RevokeToken(req.Ctx(), id); err != nil {
		return err
	}
	return req.NoContent(http.StatusNoContent)
}
