package terminal

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// model shows a screen in a terminal (bubbletea).
type model[T any] struct {
	Screen[T]
	ctx           context.Context
	value         T
	at            time.Time // of value; zero is none yet
	err           error
	paused, ended bool
	asking        bool
	colour        bool
	width, height int
}

// The messages that a model gets.
type (
	answered[T any] struct {
		value T
		err   error
	}
	elapsed struct{}
)

// Init asks for the first figures.
func (m *model[T]) Init() tea.Cmd { return m.request() }

func (m *model[T]) request() tea.Cmd {
	if m.asking {
		return nil
	}
	m.asking = true
	return func() tea.Msg {
		value, err := m.ask(m.ctx)
		return answered[T]{value, err}
	}
}

// Update takes figures, the clock and keys.
func (m *model[T]) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case answered[T]:
		m.asking, m.err = false, message.err
		if message.err == nil {
			m.value, m.at = message.value, m.Now()
			if m.ended = m.Ended != nil && m.Ended(m.value); m.ended {
				return m, tea.Quit
			}
		}
		return m, tea.Tick(m.Every, func(time.Time) tea.Msg { return elapsed{} })
	case elapsed:
		if m.paused {
			return m, tea.Tick(m.Every, func(time.Time) tea.Msg { return elapsed{} })
		}
		return m, m.request()
	case tea.KeyPressMsg:
		return m.key(message.String())
	}
	return m, nil
}

func (m *model[T]) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "esc", "ctrl+c":
		return m, tea.Quit
	case "space", "p":
		m.paused = !m.paused
	}
	return m, nil
}

// View is the frame, on a screen apart from what the terminal showed before.
func (m *model[T]) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen = true
	return v
}

func (m *model[T]) frame() string {
	if m.at.IsZero() {
		if m.err != nil {
			return "No answer: " + clean(m.err.Error()) + "\nq quits."
		}
		return "Asking …"
	}
	return m.Draw(m.value, m.view())
}

func (m *model[T]) view() View {
	return View{Width: m.width, Height: m.height, Now: m.Now(), At: m.at, Paused: m.paused, Err: m.err,
		Colour: m.colour}
}

// last are the last figures; without any, why there are none.
func (m *model[T]) last() (T, error) {
	if m.at.IsZero() && m.ctx.Err() == nil {
		return m.value, m.err
	}
	return m.value, nil
}
