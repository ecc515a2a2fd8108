package phpjob

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The bounds of a serialized value.
const (
	maxSerialized = 4 << 20 // bytes
	maxDepth      = 64
	maxValues     = 20_000
	maxText       = 4 << 10 // bytes of one string that are kept
)

// Kind is what a value of PHP's is.
type Kind int

// The kinds.
const (
	Null   Kind = iota
	Scalar      // a bool, an int or a float
	String
	Array
	Object
	Enum
	// Opaque is an object that serialized itself (Serializable): its text is not read.
	Opaque
	// Reference is the same array or object as an earlier one.
	Reference
)

// Value is a value of PHP's.
type Value struct {
	Kind Kind
	// Scalar is a bool, an int64 or a float64.
	Scalar any
	// Text is a String's (its first bytes, if it is long) or an Enum's case.
	Text  string
	Class string // of an Object, Enum, Opaque, Reference
	Items []Item // of an Array or an Object
}

// Visibility is who sees a property.
type Visibility string

// The visibilities.
const (
	Public    Visibility = "public"
	Protected Visibility = "protected"
	Private   Visibility = "private"
)

// Item is an element of an Array, or a property of an Object.
type Item struct {
	Key        string
	Index      bool // Key is a number
	Visibility Visibility
	Owner      string // the class that declares a private property
	Value      Value
}

// Property finds a property or an element; nil where there is none.
func (v *Value) Property(name string) *Value {
	for i := range v.Items {
		if v.Items[i].Key == name {
			return &v.Items[i].Value
		}
	}
	return nil
}

// ErrSerialized says that a text is not what PHP's serialize() writes, or too much of it.
var ErrSerialized = errors.New("the serialized PHP cannot be read")

// ReadValue reads what PHP's serialize() wrote.
func ReadValue(text string) (Value, error) {
	r := &reader{rest: text, total: len(text)}
	if len(text) > maxSerialized {
		return Value{}, fmt.Errorf("%w: it has %d bytes, %d are read", ErrSerialized, len(text), maxSerialized)
	}
	v, err := r.value(0)
	if err == nil && r.rest != "" {
		err = r.broken("the end")
	}
	return v, err
}

// reader is how far the reading is. seen are the values so far, as PHP numbers them
// for references: of compound ones the class only.
type reader struct {
	rest  string
	total int
	seen  []Value
}

func (r *reader) broken(want string) error {
	return fmt.Errorf("%w: no %s at byte %d", ErrSerialized, want, r.total-len(r.rest))
}

// value reads one value.
func (r *reader) value(depth int) (Value, error) {
	switch {
	case depth > maxDepth:
		return Value{}, fmt.Errorf("%w: it is nested deeper than %d", ErrSerialized, maxDepth)
	case len(r.seen) >= maxValues:
		return Value{}, fmt.Errorf("%w: it has more than %d values", ErrSerialized, maxValues)
	case strings.HasPrefix(r.rest, "R:"):
		return r.reference()
	}
	slot := len(r.seen)
	r.seen = append(r.seen, Value{})
	v, err := r.unnumbered(slot, depth)
	if err != nil {
		return Value{}, err
	}
	r.seen[slot] = brief(v)
	return v, nil
}

// brief is a value as a reference to it is shown.
func brief(v Value) Value {
	switch v.Kind {
	case Array, Object, Opaque:
		return Value{Kind: Reference, Class: v.Class}
	}
	return v
}

func (r *reader) unnumbered(slot, depth int) (Value, error) {
	if len(r.rest) < 2 {
		return Value{}, r.broken("value")
	}
	kind := r.rest[:2]
	switch kind {
	case "N;":
		r.rest = r.rest[2:]
		return Value{}, nil
	case "b:", "i:", "d:":
		return r.scalar(kind[0])
	case "s:":
		r.rest = r.rest[2:]
		text, err := r.quoted()
		if err == nil {
			err = r.expect(";")
		}
		return Value{Kind: String, Text: clipped(text)}, err
	case "a:":
		return r.array(slot, depth)
	case "O:", "C:", "E:":
		return r.object(kind, slot, depth)
	case "r:":
		return r.reference()
	}
	return Value{}, r.broken("value")
}

// clipped keeps the beginning of a long text, in a copy: the payload need not stay.
func clipped(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + fmt.Sprintf("… (%d bytes)", len(text))
	}
	return strings.Clone(text)
}

func (r *reader) expect(sign string) error {
	rest, found := strings.CutPrefix(r.rest, sign)
	if !found {
		return r.broken(strconv.Quote(sign))
	}
	r.rest = rest
	return nil
}

// number reads the digits up to a sign.
func (r *reader) number(end byte) (int, error) {
	at := strings.IndexByte(r.rest[:min(len(r.rest), 12)], end)
	if at < 0 {
		return 0, r.broken("number")
	}
	n, err := strconv.Atoi(r.rest[:at])
	if err != nil || n < 0 {
		return 0, r.broken("number")
	}
	r.rest = r.rest[at+1:]
	return n, nil
}

// quoted reads 5:"hello".
func (r *reader) quoted() (string, error) {
	n, err := r.number(':')
	if err != nil {
		return "", err
	}
	if len(r.rest) < n+2 || r.rest[0] != '"' || r.rest[n+1] != '"' {
		return "", r.broken("text of its length")
	}
	text := r.rest[1 : n+1]
	r.rest = r.rest[n+2:]
	return text, nil
}

func (r *reader) scalar(kind byte) (Value, error) {
	at := strings.IndexByte(r.rest[:min(len(r.rest), 400)], ';')
	if at < 0 {
		return Value{}, r.broken("scalar")
	}
	text := r.rest[2:at]
	var value any
	var err error
	switch kind {
	case 'b':
		value, err = strconv.ParseBool(text)
	case 'i':
		value, err = strconv.ParseInt(text, 10, 64)
	default:
		value, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		return Value{}, r.broken("scalar")
	}
	r.rest = r.rest[at+1:]
	return Value{Kind: Scalar, Scalar: value}, nil
}

func (r *reader) reference() (Value, error) {
	r.rest = r.rest[2:]
	n, err := r.number(';')
	if err != nil {
		return Value{}, err
	}
	if n < 1 || n > len(r.seen) {
		return Value{}, r.broken("earlier value")
	}
	return r.seen[n-1], nil
}

func (r *reader) array(slot, depth int) (Value, error) {
	r.rest = r.rest[2:]
	n, err := r.number(':')
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: Array}
	r.seen[slot] = brief(v)
	v.Items, err = r.items(n, depth)
	return v, err
}

// object reads an object after its kind: O:, C: or E:.
func (r *reader) object(kind string, slot, depth int) (Value, error) {
	r.rest = r.rest[2:]
	name, err := r.quoted()
	if err != nil {
		return Value{}, err
	}
	if kind == "E:" {
		class, word, _ := strings.Cut(name, ":")
		return Value{Kind: Enum, Class: clipped(class), Text: clipped(word)}, r.expect(";")
	}
	v := Value{Kind: Object, Class: clipped(name)}
	r.seen[slot] = brief(v)
	if err := r.expect(":"); err != nil {
		return Value{}, err
	}
	n, err := r.number(':')
	if err != nil {
		return Value{}, err
	}
	if kind == "C:" {
		if len(r.rest) < n+2 || r.rest[0] != '{' || r.rest[n+1] != '}' {
			return Value{}, r.broken("object of its length")
		}
		v.Kind, r.rest = Opaque, r.rest[n+2:]
		return v, nil
	}
	v.Items, err = r.items(n, depth)
	return v, err
}

// items reads n keys with their values, in brackets.
func (r *reader) items(n, depth int) ([]Item, error) {
	if err := r.expect("{"); err != nil {
		return nil, err
	}
	items := make([]Item, 0, min(n, 100))
	for range n {
		item, err := r.key()
		if err != nil {
			return nil, err
		}
		if item.Value, err = r.value(depth + 1); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, r.expect("}")
}

// key reads a key. That of a property says who sees it: "\0*\0name" is protected,
// "\0Class\0name" private.
func (r *reader) key() (Item, error) {
	if strings.HasPrefix(r.rest, "i:") {
		v, err := r.scalar('i')
		return Item{Key: fmt.Sprint(v.Scalar), Index: true, Visibility: Public}, err
	}
	if !strings.HasPrefix(r.rest, "s:") {
		return Item{}, r.broken("key")
	}
	r.rest = r.rest[2:]
	text, err := r.quoted()
	if err == nil {
		err = r.expect(";")
	}
	item := Item{Key: clipped(text), Visibility: Public}
	if rest, marked := strings.CutPrefix(text, "\x00"); marked {
		if owner, name, found := strings.Cut(rest, "\x00"); found {
			item.Key, item.Visibility = clipped(name), Protected
			if owner != "*" {
				item.Owner, item.Visibility = clipped(owner), Private
			}
		}
	}
	return item, err
}
