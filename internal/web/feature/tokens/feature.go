package tokens

import (
	"embed"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature.
func Feature() web.Feature {
	return web.Feature{Name: "tokens", Path: "/admin/tokens", Group: web.Administration, Files: files,
		Chapters: map[string]string{"tokens": "api#authorization"},
		Routes: []web.Route{
			{Method: http.MethodGet, Path: "/api/v1/tokens", Name: "tokens.list",
				Summary: "Tokens of programs, without " +
					"their secrets.",
				Scope: access.Admin, Answer: TokenList{}, Handle: listTokens},
			{Method: http.MethodPost, Path: "/api/v1/tokens", Name: "tokens.create",
				Summary: "Make a token. The answer " +
					"alone carries its secret.",
				Scope: access.Admin, Body: TokenRequest{}, Answer: TokenCreated{}, Status: http.StatusCreated,
				Handle: createToken},
			{Method: http.MethodDelete, Path: "/api/v1/tokens/:id", Name: "tokens.revoke",
				Summary: "End a token at once.",
				Scope:   access.Admin, Status: http.StatusNoContent, Handle: revokeToken},
			web.PageRoute("/admin/tokens", "pages.tokens", "Tokens of programs.", access.Admin, tokensPage),
			web.FormRoute("/admin/tokens", "tokens.create", "Make a token.", access.Admin, tokenByForm),
			web.FormRoute("/admin/tokens/:id/revoke", "tokens.revoke", "End a token at once.", access.Admin,
				revokeTokenByForm),
		}}
}
