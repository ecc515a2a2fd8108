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
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members == nil {
		return data, nil
	}
	changed := false
	for name, value := range members {
		if !secret(name) || Encrypted(value) {
			continue
		}
		encrypted, err := k.Encrypt(value)
		if err != nil {
			return nil, fmt.Errorf("the field %s: %w", name, err)
		}
		members[name], changed = encrypted, true
	}
	if !changed {
		return data, nil
	}
	return json.Marshal(members)
}

// DecryptFields decrypts the encrypted members of an object.
func (k *Keys) DecryptFields(data json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(data, []byte(Prefix)) {
		return data, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members == nil {
		return data, nil
	}
	changed := false
	for name, value := range members {
		if !Encrypted(value) {
			continue
		}
		if k == nil {
			return nil, fmt.Errorf("the field %s: %w", name, ErrNoKey)
		}
		plain, err := k.Decrypt(value)
		if err != nil {
			return nil, fmt.Errorf("the field %s: %w", name, err)
		}
		members[name], changed = plain, true
	}
	if !changed {
		return data, nil
	}
	return json.Marshal(members)
}
