// Package encryption keeps fields of payloads unreadable in the database, in exports
// and in backups: age encrypts each value to a key that is made from a secret of the
// installation, such as the CMS's APP_KEY.
//
// It is no protection from who has that secret, and it hides no keys, types or sizes.
//
// Invariants:
//
//   - A value that is encrypted is a JSON string that begins with Prefix.
//   - What is not encrypted is passed on as it is: rows of other programs stay readable.
//   - Decrypting what another key encrypted is an error, never an empty value.
package encryption
