package encryption

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNoKey says that a payload has encrypted values, and there is no key at all.
var ErrNoKey = errors.New("it is encrypted, and this process has no key: set queue.encryption_key, or point cms.root " +
	"at the CMS whose .env has the APP_KEY")

// EncryptFields encrypts the members of an object for which secret says so. Without a key
// to encrypt with, and what is no object, data stays as it is.
func (k *Keys) EncryptFields(data json.RawMessage, secret func(name string) bool) (json.RawMessage, error) {
	if k == nil || k.recipient == nil {
		return data, nil
	}
	return members(data, func(name string, value json.RawMessage) bool { return secret(name) && !Encrypted(value) },
		k.Encrypt)
}

// DecryptFields decrypts the encrypted members of an object.
func (k *Keys) DecryptFields(data json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(data, []byte(Prefix)) {
		return data, nil
	}
	return members(data, func(_ string, value json.RawMessage) bool { return Encrypted(value) }, k.Decrypt)
}

// members changes the chosen members of an object. What is no object, or has none of them,
// stays as it is.
func members(data json.RawMessage, chosen func(string, json.RawMessage) bool,
	change func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return data, nil
	}
	changed := false
	for name, value := range all {
		if !chosen(name, value) {
			continue
		}
		next, err := change(value)
		if err != nil {
			return nil, fmt.Errorf("the field %s: %w", name, err)
		}
		all[name], changed = next, true
	}
	if !changed {
		return data, nil
	}
	return json.Marshal(all)
}
