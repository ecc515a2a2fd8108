// Package terminal shows what the service does in a terminal: the figures of the
// overview, the newest jobs, one job with its log. It asks a source again and again
// and draws a frame; where there is no terminal it prints lines instead.
//
// Invariants:
//
//   - A frame is exactly as large as the terminal, whatever the figures are, and
//     depends on the figures, the size and the clock alone.
//   - Foreign text is drawn without control characters.
//   - It changes nothing; an answer of a server that it asks is bounded.
package terminal
