package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Restriction is what a handler says of payloads beyond their shape. Zero
// fields say nothing.
type Restriction[P any] struct {
	// Refuse says what no repeating would repair, such as a path outside of its
	// folder. It holds for rows as well: such a job fails for good. data is the
	// payload as it was written, with the fields' own names.
	Refuse func(data json.RawMessage, payload P) error
	// Reserved names the fields of a payload that only administrators may set over
	// HTTP, of those that are set. Rows may set them: who writes rows may do more.
	Reserved func(payload P) []string
}

// Restrict adds a restriction to a type that Handle or HandleInternal has
// registered. It panics when the type is not registered: a mistake of the
// program, seen at its start.
func Restrict[P any](r *Registry, k Kind[P], with Restriction[P]) {
	e, known := r.entries[k.Name]
	if !known {
		panic(fmt.Sprintf("jobs: a restriction for the unknown type %q", k.Name))
	}
	check, run, shape := e.Check, e.Run, e.Schema
	if with.Refuse != nil {
		refuse := func(data json.RawMessage) error {
			payload, read, _, err := decode[P](r, shape, k.Name, data)
			if err != nil {
				return err
			}
			if err := with.Refuse(read, payload); err != nil {
				return Permanent(phrase.Errorf("the payload of %s is refused: %w", k.Name, err))
			}
			return nil
		}
		e.Check = func(data json.RawMessage) error {
			if err := check(data); err != nil {
				return err
			}
			return refuse(data)
		}
		if e.Maker == Anyone { // an order was checked when it was written
			e.Run = func(ctx context.Context, j Job) error {
				var err error
				if j.Data, err = r.Decrypted(j.Type, j.Data); err != nil { // once for both
					return err
				}
				if err := refuse(j.Data); err != nil {
					return err
				}
				return run(ctx, j)
			}
		}
	}
	if with.Reserved != nil {
		e.Reserved = func(data json.RawMessage) []string {
			payload, _, _, err := decode[P](r, shape, k.Name, data)
			if err != nil {
				return nil // Check says why
			}
			return with.Reserved(payload)
		}
	}
	r.entries[k.Name] = e
}

// CheckPayload says whether data is a payload that a job of a type may have:
// its size, its shape, and what the type's handler refuses for good. One that
// names an order is: the order's own payload was checked when it was written.
// Of types that are not registered only the size is known.
func (r *Registry) CheckPayload(kind string, data json.RawMessage) error {
	return r.checkPayload(kind, data, func(e Entry, data json.RawMessage) error { return e.Check(data) })
}

// CheckNewPayload is CheckPayload for a payload that is written now: fields that
// the type does not have are refused, with a schema.UnknownError. So are encrypted
// values: a mail to oneself would tell what is in them.
func (r *Registry) CheckNewPayload(kind string, data json.RawMessage) error {
	if plain, err := r.Decrypted(kind, data); err != nil || !bytes.Equal(plain, data) {
		return phrase.Errorf("the payload of %s has a value that is encrypted already; write the value itself", kind)
	}
	return r.checkPayload(kind, data, Entry.CheckNew)
}

func (r *Registry) checkPayload(kind string, data json.RawMessage,
	check func(Entry, json.RawMessage) error) error {
	if len(data) > MaxPayload {
		return tooLarge(kind, len(data))
	}
	if !utf8.Valid(data) || len(data) > 0 && !json.Valid(data) {
		return phrase.Errorf("the payload of %s is not JSON in UTF-8", kind)
	}
	e, known := r.Known(kind)
	if !known || e.Maker != Anyone && OrderOf(data) != "" {
		return nil
	}
	plain, err := r.Decrypted(kind, data)
	if err != nil {
		return err
	}
	return check(e, plain)
}

// ReservedFields names the fields of a payload that only administrators may set
// over HTTP.
func (r *Registry) ReservedFields(kind string, data json.RawMessage) []string {
	e, known := r.Known(kind)
	if !known || e.Reserved == nil || e.Maker != Anyone && OrderOf(data) != "" {
		return nil
	}
	return e.Reserved(data)
}
