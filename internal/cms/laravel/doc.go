// Package laravel reads how a Laravel application is configured: the values
// that its config files have, and where and under which names its cache keeps
// entries.
//
// It runs no PHP. It evaluates the part of the language that config files use
// for values (literals, arrays, env(), Str::slug(), concatenation, casts,
// conditions); a value made otherwise is [ErrUnknown], and the caller falls
// back to what Laravel's skeletons have had.
//
// Invariants:
//
//   - Files are read through an os.Root on the application's folder, each at
//     most maxFile bytes, nested at most maxDepth deep.
//   - slug is Laravel's Str::slug, character by character, with the table of
//     voku/portable-ascii that every Laravel since 5.8 uses, read in the way of
//     the version that the application has.
package laravel
