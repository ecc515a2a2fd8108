package encryption

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"
)

// Prefix begins every encrypted value: "age:" and the base64 of how each file of age
// begins.
const Prefix = "age:YWdlLWVuY3J5cHRpb24ub3JnL3Yx"

// scheme stands before the base64 of the file.
const scheme = "age:"

// purpose keeps the keys apart from others that are made from the same secret.
const purpose = "cmsjobs payload fields 1"

// leastSecret is how many bytes a secret has at least.
const leastSecret = 16

// maxValue bounds what is decrypted: a payload is not larger.
const maxValue = 1 << 20

// ErrOtherKey says that a value was encrypted with a key that is not here.
var ErrOtherKey = errors.New("it was encrypted with another key: add that key to queue.previous_keys, or its " +
	"APP_KEY to the CMS's APP_PREVIOUS_KEYS, and run the job again")

// Keys encrypt with the first of several keys and decrypt with each. It is safe for
// concurrent use.
type Keys struct {
	recipient  age.Recipient
	identities []age.Identity
}

// New makes keys from secrets of at least 16 bytes each: the first encrypts.
func New(secrets ...[]byte) (*Keys, error) {
	if len(secrets) == 0 {
		return nil, errors.New("no secret to make a key from")
	}
	k := &Keys{}
	for i, secret := range secrets {
		if len(secret) < leastSecret {
			return nil, fmt.Errorf("the secret number %d has %d bytes; at least %d are needed", i+1, len(secret),
				leastSecret)
		}
		seed, err := hkdf.Key(sha256.New, secret, nil, purpose, ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		private := ed25519.NewKeyFromSeed(seed)
		identity, err := agessh.NewEd25519Identity(private)
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		k.identities = append(k.identities, identity)
		if i > 0 {
			continue
		}
		public, err := ssh.NewPublicKey(private.Public())
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		if k.recipient, err = agessh.NewEd25519Recipient(public); err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
	}
	return k, nil
}

// Of makes keys from texts as Laravel writes them, the first of which encrypts; those that
// are too short are left out: PHP's may be a word. None is nil, which reads and writes
// plain fields only.
func Of(texts ...string) (*Keys, error) {
	var secrets [][]byte
	for _, text := range texts {
		if Usable(text) {
			secrets = append(secrets, Secret(text))
		}
	}
	if len(secrets) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	return New(secrets...)
}

// Usable says whether a text is long enough to be a key.
func Usable(text string) bool { return len(Secret(text)) >= leastSecret }

// Secret is the secret that a key of Laravel stands for: base64:… or the text itself.
func Secret(key string) []byte {
	key = strings.TrimSpace(key)
	if encoded, is := strings.CutPrefix(key, "base64:"); is {
		if secret, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return secret
		}
	}
	return []byte(key)
}

// ToDecrypt are the same keys, which encrypt nothing.
func (k *Keys) ToDecrypt() *Keys { return &Keys{identities: k.identities} }

// Encrypt returns a value of JSON encrypted. null, and what is encrypted already, stay as
// they are.
func (k *Keys) Encrypt(value json.RawMessage) (json.RawMessage, error) {
	if Encrypted(value) || string(bytes.TrimSpace(value)) == "null" {
		return value, nil
	}
	var file bytes.Buffer
	w, err := age.Encrypt(&file, k.recipient)
	if err == nil {
		if _, err = w.Write(value); err == nil {
			err = w.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("encrypting a value: %w", err)
	}
	return json.Marshal(scheme + base64.StdEncoding.EncodeToString(file.Bytes()))
}

// Encrypted says whether a value of JSON is an encrypted one.
func Encrypted(value json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(value), []byte(`"`+Prefix))
}

// Decrypt returns what an encrypted value was before.
func (k *Keys) Decrypt(value json.RawMessage) (json.RawMessage, error) {
	if k == nil {
		return nil, ErrNoKey
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, fmt.Errorf("reading an encrypted value: %w", err)
	}
	file, err := base64.StdEncoding.DecodeString(text[len(scheme):])
	if err != nil {
		return nil, fmt.Errorf("reading an encrypted value: %w", err)
	}
	var other *age.NoIdentityMatchError
	r, err := age.Decrypt(bytes.NewReader(file), k.identities...)
	if errors.As(err, &other) {
		return nil, ErrOtherKey
	}
	if err != nil {
		return nil, fmt.Errorf("decrypting a value: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxValue+1))
	if err != nil {
		return nil, fmt.Errorf("decrypting a value: %w", err)
	}
	if len(plain) > maxValue || !json.Valid(plain) {
		return nil, errors.New("a decrypted value is not JSON, or larger than a payload")
	}
	return plain, nil
}
