package jobs

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/schema"
	"github.com/cmsjobs/cmsjobs/internal/schema/texts"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// enqueuePageData is the form of one type, or the choice of one.
type enqueuePageData struct {
	Types    []ops.TypeView
	Type     ops.TypeView
	Chosen   bool
	Fields   []payloadField
	More     string // JSON of further fields
	Queue    string
	Delay    string
	Priority string
	// Priorities says that the table has a column for them.
	Priorities bool
	Problem    string
}

// payloadField is one field of a payload as a form has it.
type payloadField struct {
	schema.Field
	Help  string
	Shape string // of the control: text, choice, number, flag, json
	Value string
}

// Flag says whether a flag is set.
func (f payloadField) Flag() bool { return f.Value == "true" }

// Hint is the default, or an example, for an empty control.
func (f payloadField) Hint() string {
	hint := f.Default
	if hint == nil {
		hint = f.Example
	}
	var text string
	if json.Unmarshal(hint, &text) == nil {
		return text
	}
	return string(hint)
}

func (h handlers) enqueuePage(req *web.Request) error {
	v := enqueuePageData{Types: h.types(req), Priorities: !h.NoPriorities}
	if name := req.QueryParam("type"); name != "" {
		if err := h.choose(req, &v, name); err != nil {
			return err
		}
	}
	return req.Show(web.PageView{Name: "enqueue", Data: v, Ready: true})
}

// choose prepares the form of a type.
func (h handlers) choose(req *web.Request, v *enqueuePageData, name string) error {
	i := slices.IndexFunc(v.Types, func(k ops.TypeView) bool { return k.Name == name })
	if i < 0 {
		return web.Refuse(http.StatusNotFound, "There is no type %q here.", redact.Clip(name, 60))
	}
	entry, _ := req.Registry().Known(name)
	v.Type, v.Chosen, v.Queue = v.Types[i], true, v.Types[i].Queue
	language := req.Printer().Language
	if !v.Type.Elsewhere {
		v.Type.About = texts.Of(language, name, texts.About)
	}
	if entry.Schema == nil {
		return nil
	}
	for _, f := range entry.Schema.Fields {
		v.Fields = append(v.Fields, payloadField{Field: f, Shape: shapeOf(f),
			Help: cmp.Or(f.Help, texts.Of(language, name, f.Name))})
	}
	return nil
}

// shapeOf is the control for a field. What may be a text or something else is
// written as text, or as JSON.
func shapeOf(f schema.Field) string {
	switch {
	case f.Choices != nil:
		return "choice"
	case f.Type == schema.Boolean:
		return "flag"
	case f.Type == schema.Integer, f.Type == schema.Number:
		return "number"
	case f.Type == schema.String, f.Also == schema.String:
		return "text"
	}
	return "json"
}

func (h handlers) enqueueByForm(req *web.Request) error {
	v := enqueuePageData{Types: h.types(req), Priorities: !h.NoPriorities}
	if err := h.choose(req, &v, req.FormValue("type")); err != nil {
		return err
	}
	for i := range v.Fields {
		v.Fields[i].Value = req.FormValue("p." + v.Fields[i].Name)
	}
	v.More, v.Queue, v.Delay, v.Priority = req.FormValue("more"), req.FormValue("queue"), req.FormValue("delay"),
		req.FormValue("priority")
	answer, err := h.enqueueForm(req, v)
	if err == nil {
		return req.Back("/admin/jobs/"+answer.ID, "enqueue.done")
	}
	var status int
	var ours bool
	if status, v.Problem, ours = req.Refusal(err); ours {
		return err
	}
	return req.Show(web.PageView{Name: "enqueue", Data: v, Ready: true, Status: status})
}

func (h handlers) enqueueForm(req *web.Request, v enqueuePageData) (ops.Enqueued, error) {
	payload, err := assemble(v.Fields, v.More)
	if err != nil {
		return ops.Enqueued{}, err
	}
	r := EnqueueRequest{Type: v.Type.Name, Queue: strings.TrimSpace(v.Queue), Payload: payload}
	for name, field := range map[string]struct {
		text string
		into *int
	}{"delay": {v.Delay, &r.Delay}, "priority": {v.Priority, &r.Priority}} {
		if field.text == "" {
			continue
		}
		if *field.into, err = strconv.Atoi(strings.TrimSpace(field.text)); err != nil {
			return ops.Enqueued{}, web.RefuseField(http.StatusUnprocessableEntity, name,
				"%s must be a whole number, not %q.", name, redact.Clip(field.text, 40))
		}
	}
	n, err := h.newJob(req, r)
	if err != nil {
		return ops.Enqueued{}, err
	}
	_, answer, err := h.put(req, n)
	return answer, err
}

// assemble makes a payload of a form. Empty fields are left out.
func assemble(fields []payloadField, more string) (json.RawMessage, error) {
	payload := map[string]json.RawMessage{}
	if strings.TrimSpace(more) != "" {
		if err := json.Unmarshal([]byte(more), &payload); err != nil || payload == nil {
			return nil, web.RefuseField(http.StatusUnprocessableEntity, "more", "The further fields must be a JSON "+
				"object.")
		}
	}
	for _, f := range fields {
		value := strings.TrimSpace(f.Value)
		if value == "" {
			continue
		}
		switch {
		case f.Shape == "choice", f.Shape == "text" && (f.Type == schema.String && f.Also == "" ||
			value[0] != '[' && value[0] != '{'):
			payload[f.Name] = quoted(f.Value)
		default:
			if !json.Valid([]byte(value)) {
				return nil, web.RefuseField(http.StatusUnprocessableEntity, f.Name, "%s must be %s.", f.Name,
					map[string]string{"number": "a number", "flag": "true or false", "json": "JSON",
						"text": "JSON"}[f.Shape])
			}
			payload[f.Name] = json.RawMessage(value)
		}
	}
	return json.Marshal(payload)
}
