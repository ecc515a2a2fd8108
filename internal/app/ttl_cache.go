package app

import (
	"sync"
	"time"
)

// ttlCache is an answer that serves for a while: long enough for many who
// ask at once, short enough that nobody sees old figures after an action.
type ttlCache[T any] struct {
	lock sync.Mutex
	at   time.Time
	last T
}

const rememberedFor = 10 * time.Second

func (m *ttlCache[T]) ask(now func() time.Time, find func() (T, error)) (T, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if !m.at.IsZero() && now().Sub(m.at) < rememberedFor {
		return m.last, nil
	}
	found, err := find()
	if err == nil {
		m.last, m.at = found, now()
	}
	return found, err
}
