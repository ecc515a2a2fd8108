package redact

import (
	"slices"
	"strings"
	"unicode"
)

// stems make every name secret that contains one of them, written together.
var stems = []string{
	"passw", "passwd", "pwd", "passphrase", "passcode", "kennwort", "matkhau", "secret", "token", "bearer",
	"authorization", "credential",
	"apikey", "accesskey", "privatekey", "secretkey", "encryptionkey", "signingkey", "appkey", "authkey", "serverkey",
	"licensekey", "masterkey",
	"signature", "cookie", "sessionid", "cvv", "cvc", "dsn", "connectionstring", "databaseurl", "onetimecode",
	"resetlink", "reseturl", "resetcode", "cardnumber",
}

// exact make a name secret that has one of them as a word.
var exact = []string{"pass", "pin", "auth", "sig", "jwt", "csrf", "xsrf", "confirm", "confirmation", "iban", "ssn",
	"mfa", "totp", "otp"}

// innocent are names with a stem that hold no secret.
var innocent = []string{"tokenizer", "tokensused", "maxtokens", "secretary"}

// SecretKey says whether the value under a key is never shown: the name says
// that it is a password, a token, a signature.
func SecretKey(name string) bool {
	if len(name) > 200 {
		name = name[:200]
	}
	together := joined(name)
	if slices.Contains(innocent, together) {
		return false
	}
	for _, stem := range stems {
		if strings.Contains(together, stem) {
			return true
		}
	}
	for _, word := range wordsOf(name) {
		if slices.Contains(exact, word) {
			return true
		}
	}
	return false
}

// joined is a name in lower case without anything between its words.
func joined(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// wordsOf are the words of a name: snake_case, kebab-case, camelCase.
func wordsOf(name string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			lower = false
			continue
		case unicode.IsUpper(r) && lower:
			end()
		}
		lower = !unicode.IsUpper(r)
		word.WriteRune(unicode.ToLower(r))
	}
	end()
	return words
}
