// Package phrase makes errors whose text can be translated: they keep the form that
// the text was made of, and its values.
//
// It knows no language and no translation: who shows an error looks its form up.
// It is for refusals that a person reads who asked for something; errors of the
// program itself are made by package fmt.
//
// Invariants:
//
//   - What Errorf makes has the text, and wraps the errors, of fmt.Errorf with the
//     same arguments.
//   - Text never loses what a wrapper added: then it returns the English text.
package phrase
