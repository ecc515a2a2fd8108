package markup_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cmsjobs/cmsjobs/internal/markup"
)

func TestAttribute(t *testing.T) {
	tokens := html.NewTokenizer(strings.NewReader(`<a HREF=" /x?a=1&amp;b=2 " href="/second" title>`))
	tokens.Next()
	element := tokens.Token()
	for name, want := range map[string]string{"href": " /x?a=1&b=2 ", "title": "", "rel": ""} {
		if got := markup.Attribute(element, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
