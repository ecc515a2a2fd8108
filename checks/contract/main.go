package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}

func run(args []string, r io.Reader, w io.Writer) error {
	if len(args) != 1 {
		return errors.New("name the OpenAPI document")
	}
	doc, err := openapi3.NewLoader().LoadFromFile(args[0])
	if err != nil {
		return err
	}
	answers := json.NewEncoder(w)
	faults := []string{}
	if err := doc.Validate(context.Background()); err != nil {
		faults = append(faults, fmt.Sprintf("the document is no OpenAPI 3.1: %v", err))
	}
	if err := answers.Encode(faults); err != nil {
		return err
	}
	c := contract{doc}
	for exchanges := json.NewDecoder(bufio.NewReader(r)); ; {
		var e exchange
		if err := exchanges.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(c.faults(e)); err != nil {
			return err
		}
	}
}

// exchange is a request and its answer.
type exchange struct {
	Method, Path string
	Status       int
	Type         string // of the answer: Content-Type
	Request      string // "" is no body, or one that was not sent as text
	Answer       string
}

type contract struct{ doc *openapi3.T }

func (c contract) faults(e exchange) []string {
	path, _, _ := strings.Cut(e.Path, "?")
	template, item := c.find(e.Method, path)
	if item == nil {
		return []string{}
	}
	op, what := item.GetOperation(e.Method), fmt.Sprintf("%s %s %d", e.Method, template, e.Status)
	response := op.Responses.Status(e.Status)
	if response == nil {
		if response = op.Responses.Default(); response == nil || e.Status < 400 {
			return []string{what + " is not in the document"}
		}
	}
	if len(response.Value.Content) == 0 {
		if e.Answer != "" {
			return []string{what + " has a body: " + e.Answer}
		}
		return []string{}
	}
	kind, _, _ := strings.Cut(e.Type, ";")
	media := response.Value.Content[kind]
	if media == nil {
		return []string{fmt.Sprintf("%s answers %q", what, kind)}
	}
	if !strings.HasSuffix(kind, "json") {
		return []string{}
	}
	faults := check(what+" answer", media.Schema, e.Answer)
	if e.Request != "" && e.Status < 300 && op.RequestBody != nil {
		faults = append(faults, check(what+" request", op.RequestBody.Value.Content["application/json"].Schema,
			e.Request)...)
	}
	return faults
}

func check(what string, schema *openapi3.SchemaRef, text string) []string {
	var value any
	err := json.Unmarshal([]byte(text), &value)
	if err == nil {
		err = schema.Value.VisitJSON(value)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: %v\n%s", what, err, text)}
	}
	return []string{}
}

// find prefers a template without variables.
func (c contract) find(method, path string) (string, *openapi3.PathItem) {
	var found string
	for template, item := range c.doc.Paths.Map() {
		if item.GetOperation(method) != nil && fits(template, path) &&
			(found == "" || !strings.Contains(template, "{")) {
			found = template
		}
	}
	return found, c.doc.Paths.Value(found)
}

func fits(template, path string) bool {
	want, have := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}
