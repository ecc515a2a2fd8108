package phpjob

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Classes of Laravel's that are shown in their own way.
const (
	modelIdentifier = `Illuminate\Contracts\Database\ModelIdentifier`
	serializable    = "SerializableClosure"
)

// ClassKey is the key under which Plain has the class of an object.
const ClassKey = "(class)"

// Plain is a value as JSON has it: nil, bool, int64, float64, string, []any,
// map[string]any. An object of the database is "App\Models\Post:17", a date is its
// text, an object of any other class has it under ClassKey.
func (v *Value) Plain() any {
	switch v.Kind {
	case Null:
		return nil
	case Scalar:
		if f, is := v.Scalar.(float64); is && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return fmt.Sprint(f)
		}
		return v.Scalar
	case String:
		return plainText(v.Text)
	case Enum:
		return v.Class + "::" + v.Text
	case Opaque:
		return bracketed(v.Class)
	case Reference:
		if v.Class == "" {
			return "(the same array as before)"
		}
		return "(the same " + v.Class + " as before)"
	case Array:
		return plainItems(v.Items, nil)
	}
	return v.plainObject()
}

// serialized is how an array or an object begins that serialize() wrote.
var serialized = regexp.MustCompile(`^[aOC]:\d+:[{"]`)

// plainText is a string; one that is serialized PHP itself stays closed.
func plainText(text string) string {
	if serialized.MatchString(text) {
		return "(serialized PHP)"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func bracketed(class string) string {
	if isClosure(class) {
		return "(closure)"
	}
	return "(" + class + ")"
}

func isClosure(class string) bool {
	return strings.HasSuffix(class, serializable) || class == "Closure" ||
		strings.HasPrefix(class, `Laravel\SerializableClosure\`) || strings.HasPrefix(class, `Opis\Closure\`)
}

func (v *Value) plainObject() any {
	switch {
	case v.Class == modelIdentifier:
		names := v.models()
		if len(names) == 1 {
			return names[0]
		}
		return names
	case isClosure(v.Class):
		return "(closure)"
	}
	if date := v.Property("date"); date != nil && date.Kind == String && v.Property("timezone") != nil {
		return strings.TrimSuffix(date.Text, ".000000") + " " + textOf(v.Property("timezone"))
	}
	if items := v.Property("items"); items != nil && items.Kind == Array && strings.HasSuffix(v.Class, "Collection") {
		return items.Plain()
	}
	return plainItems(v.Items, map[string]any{ClassKey: v.Class})
}

// plainItems is a list where the keys count from 0, and an object otherwise.
func plainItems(items []Item, object map[string]any) any {
	isList := object == nil
	for i := range items {
		isList = isList && items[i].Index && items[i].Key == strconv.Itoa(i)
	}
	if isList {
		list := make([]any, len(items))
		for i := range items {
			list[i] = items[i].Value.Plain()
		}
		return list
	}
	if object == nil {
		object = make(map[string]any, len(items))
	}
	for i := range items {
		object[strings.ToValidUTF8(items[i].Key, "\uFFFD")] = items[i].Value.Plain()
	}
	return object
}

// textOf is a string's text, or a number's.
func textOf(v *Value) string {
	switch {
	case v == nil:
		return ""
	case v.Kind == String:
		return strings.ToValidUTF8(v.Text, "\uFFFD")
	case v.Kind == Scalar:
		return fmt.Sprint(v.Scalar)
	}
	return ""
}

// maxModels bounds how many models one collection names.
const maxModels = 100

// models are the names of the models that a property stands for, as Horizon's tags
// have them: class and key. nil where it is none.
func (v *Value) models() []string {
	if v.Kind != Object || v.Class != modelIdentifier {
		return nil
	}
	class, id := textOf(v.Property("class")), v.Property("id")
	if class == "" || id == nil {
		return nil
	}
	if id.Kind != Array {
		return []string{class + ":" + textOf(id)}
	}
	var names []string
	for i := range id.Items[:min(len(id.Items), maxModels)] {
		names = append(names, class+":"+textOf(&id.Items[i].Value))
	}
	return names
}
