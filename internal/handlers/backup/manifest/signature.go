package manifest

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Origin says who made a backup.
type Origin string

// The origins of a backup.
const (
	Own     Origin = "own"     // this installation: by its signature
	Trusted Origin = "trusted" // an installation whose key is among Options.TrustedKeys
	Unknown Origin = "unknown" // nobody that is known: not signed, or by an unknown key
	Altered Origin = "altered" // the signature or the recorded hash is of another backup
)

func (o Origin) Foreign() bool { return o != Own && o != Trusted }

const (
	keyScheme = "ed25519:"
)

const (
	signContext = "cmsjobs backup manifest 1\n"
)

// Signer is what signs manifest files and knows signatures.
type Signer struct {
	Private ed25519.PrivateKey
	Trusted []string
}

func (s Signer) PublicKey() string {
	return keyScheme + base64.StdEncoding.EncodeToString(s.Private.Public().(ed25519.PublicKey))
}

// CheckKey says what is wrong with the text of a public key.
func CheckKey(text string) error {
	_, err := parseKey(text)
	return err
}

func parseKey(text string) (ed25519.PublicKey, error) {
	encoded, is := strings.CutPrefix(text, keyScheme)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !is || err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%.80q is no public key: cmsjobs backup key prints one (ed25519:…)", text)
	}
	return key, nil
}

// signed is what a signature is about: everything that a manifest file says when it
// is made. Where the archive lies is not part of it.
func (s File) signed() ([]byte, error) {
	s.Status, s.Verification, s.Warnings, s.Signature = "", nil, nil, ""
	s.Archive = path.Base(s.Archive)
	data, err := json.Marshal(s)
	return append([]byte(signContext), data...), err
}

// Sign signs a manifest file.
func (s Signer) Sign(side *File) error {
	side.SignedBy = s.PublicKey()
	data, err := side.signed()
	if err != nil {
		return err
	}
	side.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(s.Private, data))
	return nil
}

// BadSignature stands for a signature that does not fit.
const BadSignature = "bad"

// SignatureKey is the key whose signature a manifest file bears: "" when none, badSignature
// when it does not fit.
func (s File) SignatureKey() string {
	if s.Signature == "" && s.SignedBy == "" {
		return ""
	}
	key, err := parseKey(s.SignedBy)
	if err != nil {
		return BadSignature
	}
	signature, err := base64.StdEncoding.DecodeString(s.Signature)
	if err != nil {
		return BadSignature
	}
	data, err := s.signed()
	if err != nil || !ed25519.Verify(key, data, signature) {
		return BadSignature
	}
	return s.SignedBy
}

// Judge judges a backup by its signature and by the hash that this database
// recorded when it was made ("" when it did not).
func (s Signer) Judge(signedBy, sum, recorded string) Origin {
	switch {
	case signedBy == BadSignature, recorded != "" && recorded != sum:
		return Altered
	case signedBy == s.PublicKey():
		return Own
	case slices.Contains(s.Trusted, signedBy):
		return Trusted
	}
	return Unknown
}

// KeyOf is the public key of a name if it is ours or of a trusted installation,
// nil otherwise.
func (s Signer) KeyOf(name string) ed25519.PublicKey {
	if name != s.PublicKey() && !slices.Contains(s.Trusted, name) {
		return nil
	}
	key, err := parseKey(name)
	if err != nil {
		return nil
	}
	return key
}
