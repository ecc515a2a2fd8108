package ops

import (
	"encoding/json"
	"io"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// DefaultLimit is how many items a part of a list has where nobody says it.
const DefaultLimit = 20

// ListView is a part of a list.
type ListView[T any] struct {
	Items []T `json:"items"`
	// Total is −1 where counting would be expensive.
	Total  int64 `json:"total"`
	Limit  int   `json:"limit"`
	Offset int   `json:"offset"`
	// Next is the cursor of the next part; it is absent at the end.
	Next string `json:"next,omitempty"`
}

// Items is a whole list that needs no parts.
type Items[T any] struct {
	Items []T `json:"items"`
}

// Listed shows a part of a list.
func Listed[T, V any](l jobs.List[T], p jobs.Page, view func(T) V) ListView[V] {
	return ListView[V]{Items: Each(l.Items, view), Total: l.Total, Limit: p.Limit, Offset: p.Offset, Next: l.Next}
}

// ItemsOf shows a whole list.
func ItemsOf[T, V any](list []T, view func(T) V) Items[V] { return Items[V]{Each(list, view)} }

// Each maps a list; the result is never nil, so that JSON says [].
func Each[T, V any](items []T, view func(T) V) []V {
	views := make([]V, 0, len(items))
	for _, item := range items {
		views = append(views, view(item))
	}
	return views
}

// Encode writes one value as a line of JSON, as both the API and the command
// line answer programs. indent is for people at a terminal.
func Encode(w io.Writer, value any, indent string) error {
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
