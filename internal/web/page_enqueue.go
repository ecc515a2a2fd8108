package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/ops"
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

func (s *Server) enqueuePage(c echo.Context) error {
	v := enqueuePageData{Types: s.types()}
	if name := c.QueryParam("type"); name != "" {
		if err := s.choose(&v, name); err != nil {
			return err
		}
	}
	return s.show(c, "enqueue", "enqueue.title", v)
}

// choose prepares the form of a type.
func (s *Server) choose(v *enqueuePageData, name string) error {
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
	return httpError(http.StatusNotFound, "There is no type %q here.", clip(name, 60))
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

func (s *Server) enqueueByForm(c echo.Context) error {
	v := enqueuePageData{Types: s.types()}
	if err := s.choose(&v, c.FormValue("type")); err != nil {
		return err
	}
	for i := range v.Fields {
		v.Fields[i].Value = c.FormValue("p." + v.Fields[i].Name)
	}
	v.More, v.Queue, v.Delay, v.Priority = c.FormValue("more"), c.FormValue("queue"), c.FormValue("delay"), c.FormValue("priority")
	answer, err := s.enqueueForm(c, v)
	if err == nil {
		return s.back(c, "/admin/jobs/"+answer.ID, "enqueue.done")
	}
	var p *Problem
	if !errors.As(err, &p) || p.Status >= http.StatusInternalServerError {
		return err
	}
	v.Problem = p.in(s.printer(c))
	return s.write(c, p.Status, "enqueue", s.pageView(c, "enqueue", "enqueue.title", v))
}

func (s *Server) enqueueForm(c echo.Context, v enqueuePageData) (ops.Enqueued, error) {
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
			return ops.Enqueued{}, fieldError(http.StatusUnprocessableEntity, name, "%s must be a whole number, not %q.", name, clip(field.text, 40))
		}
	}
	n, err := s.newJob(c, r)
	if err != nil {
		return ops.Enqueued{}, err
	}
	_, answer, err := s.put(c, n)
	return answer, err
}

// assemble makes a payload of a form. Empty fields are left out.
func assemble(fields []payloadField, more string) (json.RawMessage, error) {
	payload := map[string]json.RawMessage{}
	if strings.TrimSpace(more) != "" {
		if err := json.Unmarshal([]byte(more), &payload); err != nil || payload == nil {
			return nil, fieldError(http.StatusUnprocessableEntity, "more", "The further fields must be a JSON object.")
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
				return nil, fieldError(http.StatusUnprocessableEntity, f.Name, "%s must be %s.", f.Name, map[string]string{"number": "a number", "flag": "true or false", "json": "JSON"}[f.Shape])
			}
			payload[f.Name] = json.RawMessage(value)
		}
	}
	return json.Marshal(payload)
}
