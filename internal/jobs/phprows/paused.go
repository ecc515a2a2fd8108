package phprows

import (
	"context"
	"fmt"
	"time"
)

// pauseSeen is how long an answer serves: a pause holds for PHP's jobs a second after
// it was made.
const pauseSeen = time.Second

// paused says whether people paused the queue. Only the holder of l.alone asks.
func (s *Store) paused(ctx context.Context, l *look, queue string) (bool, error) {
	now := s.Options.Clock()
	if !l.asked.IsZero() && now.Sub(l.asked) < pauseSeen {
		return l.paused, nil
	}
	var one int
	paused, err := s.QueryRow(ctx, s.OwnDB, []any{&one}, "SELECT 1 FROM cmsjobs_paused WHERE queue = ?", queue)
	if err != nil {
		return false, fmt.Errorf("looking whether the queue is paused: %w", err)
	}
	l.paused, l.asked = paused, now
	return paused, nil
}
