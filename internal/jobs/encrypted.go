package jobs

import (
	"encoding/json"
	"fmt"
)

// FieldKeys encrypt and decrypt the members of payloads (package encryption). Data without
// encrypted members, and what is no object, stays as it is.
type FieldKeys interface {
	EncryptFields(data json.RawMessage, secret func(name string) bool) (json.RawMessage, error)
	DecryptFields(data json.RawMessage) (json.RawMessage, error)
}

// SetKeys makes the stores that use the registry write the encrypted fields of payloads with
// these keys, and the handlers read them. Without, fields are written as they come.
func (r *Registry) SetKeys(k FieldKeys) { r.keys = k }

// UseKeysOf makes a registry of one worker use the keys of the program's.
func (r *Registry) UseKeysOf(program *Registry) { r.keys = program.keys }

// Encrypted is the payload of a type as it is stored: fields that its schema calls
// encrypted are.
func (r *Registry) Encrypted(jobType string, data json.RawMessage) (json.RawMessage, error) {
	e, known := r.Known(jobType)
	if r.keys == nil || !known || !e.Schema.HasEncrypted() {
		return data, nil
	}
	data, err := r.keys.EncryptFields(data, e.Schema.IsEncrypted)
	if err != nil {
		return nil, fmt.Errorf("encrypting the payload of %s: %w", jobType, err)
	}
	return data, nil
}

// Decrypted is a stored payload as its handler reads it.
func (r *Registry) Decrypted(jobType string, data json.RawMessage) (json.RawMessage, error) {
	if r.keys == nil {
		return data, nil
	}
	data, err := r.keys.DecryptFields(data)
	if err != nil {
		return nil, fmt.Errorf("reading the payload of %s: %w", jobType, err)
	}
	return data, nil
}
