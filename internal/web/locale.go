package web

import (
	"fmt"
	"strings"

	"github.com/labstack/echo/v4"
)

// languages of the pages; the first one serves where no other fits.
var languages = []struct{ Code, Name string }{{"en", "English"}, {"vi", "Tiếng Việt"}}

// catalogues hold every text of the pages. Both have the same keys (a test
// compares them), and no template has a text of its own.
var catalogues = map[string]map[string]string{"en": wordsEN, "vi": wordsVI}

// translate is a text of the catalogue with its figures filled in. A key that is not
// there shows itself: a test looks for such.
func translate(lang, key string, args ...any) string {
	text, ok := catalogues[lang][key]
	if !ok {
		return "⟨" + key + "⟩"
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

func knownLanguage(code string) bool { return catalogues[code] != nil }

// language is the person's: his choice, else the first that his browser asks for.
func language(c echo.Context) string {
	if cookie, err := c.Cookie(languageCookie); err == nil && knownLanguage(cookie.Value) {
		return cookie.Value
	}
	for _, part := range strings.Split(c.Request().Header.Get("Accept-Language"), ",") {
		code, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		code, _, _ = strings.Cut(strings.ToLower(code), "-")
		if knownLanguage(code) {
			return code
		}
	}
	return languages[0].Code
}
