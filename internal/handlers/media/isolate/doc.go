// Package isolate renders a picture in a separate process, which may take only
// so much memory and time: a decoder that runs away ends that process, and
// costs its job, not the worker. (A Go process that is out of memory ends; it
// cannot recover.)
//
// It is no sandbox against hostile code: the decoders are Go, which keeps to
// its memory. The child gets no environment, no files and no secrets, though.
//
// Invariants: one process a picture; it is gone when Render returns; its
// answers are those of picture.Maker.Render, errors included.
package isolate
