package jobs

import "time"

// Backoff is the wait before the next attempt after so many failed ones
// (1 after the first).
type Backoff func(failures int) time.Duration

// Fixed waits d every time.
func Fixed(d time.Duration) Backoff {
	return func(int) time.Duration { return d }
}

// Exponential waits base, 2·base, 4·base, … up to limit.
func Exponential(base, limit time.Duration) Backoff {
	return func(failures int) time.Duration {
		d := base
		for range failures - 1 {
			if d >= limit/2 {
				return limit
			}
			d *= 2
		}
		return min(d, limit)
	}
}

// Steps waits each of the given lengths in turn, then the last one for ever.
func Steps(steps ...time.Duration) Backoff {
	return func(failures int) time.Duration {
		if len(steps) == 0 {
			return 0
		}
		return steps[min(max(failures, 1), len(steps))-1]
	}
}

// WithJitter adds up to share (0.2 is 20 %) to each wait. It only adds, so the
// waits that a specification names stay minimums. random returns [0, 1).
func (b Backoff) WithJitter(share float64, random func() float64) Backoff {
	return func(failures int) time.Duration {
		d := b(failures)
		return d + time.Duration(float64(d)*share*random())
	}
}
