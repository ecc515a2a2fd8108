package conditions

import "context"

// Round is what Run does each time.
func (e *Evaluator) Round(ctx context.Context) { e.round(ctx) }
