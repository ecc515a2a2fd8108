package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Rules hide values in JSON: under names of secrets, inside of texts, at the
// paths of the configuration, and what only operators see.
type Rules struct {
	hidden, confidential []rule
	fields               Fields
}

// Fields knows by which names the fields of payloads go; *jobs.Registry does.
type Fields interface {
	// OwnPath is a path into the payload of a type by the names that the type
	// itself has for its fields, and the type's own name.
	OwnPath(kind string, at []string) (ownKind string, own []string)
}

// rule is one path: keys separated by dots, * is any key or index. kind, where
// it is set, limits it to one job type.
type rule struct {
	kind string
	path []string
}

// confidential are fields of payloads that readers do not see: the text of
// mails holds reset links and codes.
var confidential = []string{
	"mail.send:body", "mail.send:html", "mail.send:text", "mail.send:data", "mail.send:content",
	"mail.send:attachments", "mail.send:headers",
	"webhook.deliver:data", "webhook.deliver:url",
}

// NewRules reads paths such as "mail.send:body" and "*.card.number"; what they
// name is hidden from everybody. A field is hidden by whichever of its names it
// stands in a payload, and by whichever a path names it. Where fields is nil,
// names are compared as they are.
func NewRules(paths []string, fields Fields) (*Rules, error) {
	hidden, err := parseRules(paths, fields)
	if err != nil {
		return nil, err
	}
	inner, err := parseRules(confidential, fields)
	return &Rules{hidden, inner, fields}, err
}

func parseRules(paths []string, fields Fields) ([]rule, error) {
	var list []rule
	for _, p := range paths {
		kind, keys, scoped := strings.Cut(p, ":")
		if !scoped {
			kind, keys = "", p
		}
		r := rule{kind, strings.Split(keys, ".")}
		for _, key := range r.path {
			if _, err := path.Match(key, ""); err != nil || key == "" {
				return nil, fmt.Errorf("the mask path %q is not keys separated by dots", p)
			}
		}
		if fields != nil && kind != "" {
			r.kind, r.path = fields.OwnPath(kind, r.path)
		}
		list = append(list, r)
	}
	return list, nil
}

// maxBroken is how many bytes are shown of what is no JSON.
const maxBroken = 200

// JSON returns the JSON of a job type as an audience may see it. What is no
// JSON becomes a string of its beginning.
func (r *Rules) JSON(to Audience, kind string, raw []byte) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	if r.fields != nil {
		kind, _ = r.fields.OwnPath(kind, nil)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // 64-bit ids stay as they are
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.More() || !utf8.Valid(raw) {
		value = "(no JSON) " + Clip(TextFor(to, string(raw)), maxBroken)
		if to < Operators && r.hasConfidential(kind) {
			value = "(no JSON)"
		}
	}
	shown, err := json.Marshal(r.value(to, kind, nil, value))
	if err != nil {
		return json.RawMessage(`"(not readable)"`)
	}
	return shown
}

func (r *Rules) hasConfidential(kind string) bool {
	for _, x := range r.confidential {
		if x.kind == kind {
			return true
		}
	}
	return false
}

func (r *Rules) value(to Audience, kind string, at []string, value any) any {
	if len(at) > 0 && tells(value) && r.hides(to, kind, at) {
		return Mask
	}
	switch v := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for key, inner := range v {
			shown[Text(key)] = r.value(to, kind, append(at[:len(at):len(at)], key), inner)
		}
		return shown
	case []any:
		for i, inner := range v {
			v[i] = r.value(to, kind, append(at[:len(at):len(at)], "*"), inner)
		}
	case string:
		return TextFor(to, v)
	}
	return value
}

// tells says whether a value tells anything that could be secret.
func tells(value any) bool {
	switch v := value.(type) {
	case nil, bool:
		return false
	case string:
		return v != ""
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return true
}

func (r *Rules) hides(to Audience, kind string, at []string) bool {
	places := [][]string{at}
	if r.fields != nil {
		_, own := r.fields.OwnPath(kind, at)
		_, last := r.fields.OwnPath(kind, at[len(at)-1:]) // where a payload stands inside of something else
		places = append(places, own, last)
	}
	lists := [][]rule{r.hidden}
	if to < Operators {
		lists = append(lists, r.confidential)
	}
	for _, place := range places {
		if SecretKey(place[len(place)-1]) || anyNames(lists, kind, place) {
			return true
		}
	}
	return false
}

// anyNames says whether one of the rules names a place.
func anyNames(lists [][]rule, kind string, at []string) bool {
	for _, list := range lists {
		for _, x := range list {
			if (x.kind == "" || x.kind == kind) && matches(x.path, at) {
				return true
			}
		}
	}
	return false
}

// matches compares a rule with a place, whatever their capitals; a rule may begin
// anywhere in it.
func matches(rule, at []string) bool {
	if len(rule) > len(at) {
		return false
	}
	for i, pattern := range rule {
		name := at[len(at)-len(rule)+i]
		if ok, _ := path.Match(strings.ToLower(pattern), strings.ToLower(name)); !ok {
			return false
		}
	}
	return true
}

// Clip cuts text to n bytes at most, at a rune's border, and shows that it did.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
