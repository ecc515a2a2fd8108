package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
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
	Problem  string
}

// payloadField is one field of a payload as a form has it.
type payloadField struct {
	Name, Shape, Value string // Shape: text, number, flag, json
}

// Flag says whether a flag is set.
func (f payloadField) Flag() bool { return f.Value == "true" }

func (h handlers) enqueuePage(req *web.Request) error {
	v := enqueuePageData{Types: h.types(req)}
	if name := req.QueryParam("type"); name != "" {
		if err := h.choose(&v, name); err != nil {
			return err
		}
	}
	return req.Show(web.PageView{Name: "enqueue", Data: v, Ready: true})
}

// choose prepares the form of a type.
func (h handlers) choose(v *enqueuePageData, name string) error {
	for _, k := range v.Types {
		if k.Name != name {
			continue
		}
		fields, err := fieldsOf(k.Example)
		if err != nil {
			return fmt.Errorf("reading the example of %s: %w", name, err)
		}
		v.Type, v.Chosen, v.Fields, v.Queue = k, true, fields, k.Queue
		return nil
	}
	return web.Refuse(http.StatusNotFound, "There is no type %q here.", redact.Clip(name, 60))
}

// fieldsOf makes a form from a payload's zero value, in its order.
func fieldsOf(example json.RawMessage) ([]payloadField, error) {
	d := json.NewDecoder(bytes.NewReader(example))
	first, err := d.Token()
	if err != nil || first != json.Delim('{') {
		return nil, err // no object: the field for further JSON serves
	}
	var fields []payloadField
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		f := payloadField{Name: fmt.Sprint(key), Shape: "json"}
		switch raw[0] {
		case '"':
			f.Shape = "text"
		case 't', 'f':
			f.Shape = "flag"
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			f.Shape = "number"
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func (h handlers) enqueueByForm(req *web.Request) error {
	v := enqueuePageData{Types: h.types(req)}
	if err := h.choose(&v, req.FormValue("type")); err != nil {
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
		switch f.Shape {
		case "text":
			payload[f.Name] = quoted(f.Value)
		default:
			if !json.Valid([]byte(value)) {
				return nil, web.RefuseField(http.StatusUnprocessableEntity, f.Name, "%s must be %s.", f.Name,
					map[string]string{"number": "a number", "flag": "true or false", "json": "JSON"}[f.Shape])
			}
			payload[f.Name] = json.RawMessage(value)
		}
	}
	return json.Marshal(payload)
}
