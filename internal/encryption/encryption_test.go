package encryption_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/encryption"
)

func keys(t testing.TB, secrets ...string) *encryption.Keys {
	t.Helper()
	var list [][]byte
	for _, s := range secrets {
		list = append(list, encryption.Secret(s))
	}
	k, err := encryption.New(list...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const (
	first  = "base64:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	second = "base64://///wQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

func hidden(name string) bool { return name == "body" || name == "data" }

func TestFieldsAreReadBackAsTheyWere(t *testing.T) {
	k := keys(t, first)
	for _, data := range []string{`{"to":"zoe@example.com","body":"the link \"x\" <b> é 🙂"}`, `{"body":""}`, `{}`,
		`{"data":{"url":"https://example.org/reset/abc","n":12345678901234567890}}`, `{"body":null,"data":[1,2]}`,
		`{"body":"age:not encrypted"}`} {
		stored, err := k.EncryptFields([]byte(data), hidden)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"the link", "reset/abc", "1234567"} {
			if bytes.Contains(stored, []byte(secret)) {
				t.Errorf("%s shows %q", stored, secret)
			}
		}
		again, err := k.EncryptFields(stored, hidden)
		if err != nil || !bytes.Equal(again, stored) {
			t.Errorf("%s is encrypted twice: %s, %v", data, again, err)
		}
		plain, err := k.DecryptFields(stored)
		if err != nil || !same(t, plain, []byte(data)) {
			t.Errorf("%s is read back as %s, %v", data, plain, err)
		}
	}
}

func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y bytes.Buffer
	for from, to := range map[*bytes.Buffer][]byte{&x: a, &y: b} {
		d := json.NewDecoder(bytes.NewReader(to))
		d.UseNumber()
		var value any
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
		if err := json.NewEncoder(from).Encode(value); err != nil {
			t.Fatal(err)
		}
	}
	return x.String() == y.String()
}

func TestKeysChange(t *testing.T) {
	old := keys(t, first)
	stored, err := old.EncryptFields([]byte(`{"body":"secret"}`), hidden)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := keys(t, second, first).DecryptFields(stored); err != nil || string(plain) != `{"body":"secret"}` {
		t.Errorf("with the key before: %s, %v", plain, err)
	}
	if plain, err := keys(t, second).DecryptFields(stored); !errors.Is(err, encryption.ErrOtherKey) || plain != nil {
		t.Errorf("without it: %s, %v", plain, err)
	}
	var none *encryption.Keys
	if plain, err := none.DecryptFields(stored); !errors.Is(err, encryption.ErrNoKey) || plain != nil {
		t.Errorf("without any: %s, %v", plain, err)
	}
	if kept, err := none.EncryptFields([]byte(`{"body":"x"}`), hidden); err != nil || string(kept) != `{"body":"x"}` {
		t.Errorf("without a key it is stored as it comes: %s, %v", kept, err)
	}
	off := old.ToDecrypt()
	if kept, err := off.EncryptFields([]byte(`{"body":"x"}`), hidden); err != nil || string(kept) != `{"body":"x"}` {
		t.Errorf("switched off: %s, %v", kept, err)
	}
	if plain, err := off.DecryptFields(stored); err != nil || string(plain) != `{"body":"secret"}` {
		t.Errorf("switched off, it still reads: %s, %v", plain, err)
	}
}

func TestShortSecretsAreRefused(t *testing.T) {
	if _, err := encryption.New([]byte("short")); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Error(err)
	}
	if _, err := encryption.New(); err == nil {
		t.Error("no secret makes a key")
	}
}

// A row may hold anything after the prefix: an error, and no more.
func FuzzDecrypt(f *testing.F) {
	k := keys(f, first)
	whole, err := k.EncryptFields([]byte(`{"body":"secret"}`), hidden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(whole))
	f.Add([]byte(`{"body":"` + encryption.Prefix + `"}`))
	f.Add([]byte(`{"body":"` + encryption.Prefix + `CgotPiA="}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, err := k.DecryptFields(data)
		if err == nil && !json.Valid(plain) && json.Valid(data) {
			t.Errorf("%q becomes %q", data, plain)
		}
	})
}
