package markup

import "golang.org/x/net/html"

// Attribute is the value of an element's attribute as it stands there, unescaped;
// "" where the element has none of that name.
func Attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
