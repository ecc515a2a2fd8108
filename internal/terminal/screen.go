package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Screen is what is shown: figures of type T, asked for again and again.
type Screen[T any] struct {
	Every time.Duration
	Ask   func(context.Context) (T, error)
	// Draw is a frame of the figures.
	Draw func(T, View) string
	// Lines are what is printed of new figures where there is no terminal; before are the
	// ones that were printed last.
	Lines func(now T, before *T) []string
	// Ended says that nothing changes any more; nil is never.
	Ended func(T) bool
	Now   func() time.Time
}

// View is how a frame is drawn.
type View struct {
	Width, Height int
	Now           time.Time
	At            time.Time // when the figures came
	Paused        bool
	Err           error // why there are no newer ones
	Colour        bool
}

// Output is where a screen is shown.
type Output struct {
	In   io.Reader
	Out  io.Writer
	TTY  bool // both are a terminal
	JSON bool // prints the figures as JSON, one line each time
	Once bool // ends after the first figures
	// Colour draws statuses in colours.
	Colour bool
	// Width and Height of a terminal that cannot be asked; 0 asks it.
	Width, Height int
}

// patience is how long an answer may take.
const patience = 10 * time.Second

// Show shows a screen until its end, ctx's end, or the key q. It returns the last figures.
func (s Screen[T]) Show(ctx context.Context, o Output) (T, error) {
	if !o.TTY || o.JSON || o.Once {
		return s.print(ctx, o)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &model[T]{Screen: s, ctx: ctx, colour: o.Colour, width: 80, height: 24}
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out),
		tea.WithoutSignalHandler()}
	if o.Width > 0 {
		options = append(options, tea.WithWindowSize(o.Width, o.Height))
	}
	_, err := tea.NewProgram(m, options...).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = nil // ctx ended: the person or the supervisor wants it so
	}
	if err != nil {
		return m.value, fmt.Errorf("drawing: %w", err)
	}
	if m.value, err = m.last(); err != nil {
		return m.value, err
	}
	if m.ended { // the last frame stays when the terminal is as it was before
		_, err = fmt.Fprintln(o.Out, s.Draw(m.value, m.view()))
	}
	return m.value, err
}

// print writes lines instead of frames. An error ends it only before the first figures.
func (s Screen[T]) print(ctx context.Context, o Output) (value T, err error) {
	var before *T
	for {
		fresh, err := s.ask(ctx)
		switch {
		case err != nil && (before == nil || ctx.Err() != nil):
			return value, ended(ctx, err, before != nil)
		case err != nil:
			late := s.Now().UTC().Format(time.TimeOnly) + "  no answer: " + clean(err.Error())
			if _, err := fmt.Fprintln(o.Out, late); err != nil {
				return value, err
			}
		default:
			if err := s.write(o, fresh, before); err != nil {
				return fresh, err
			}
			value, before = fresh, &fresh
			if o.Once || s.Ended != nil && s.Ended(fresh) {
				return value, nil
			}
		}
		select {
		case <-ctx.Done():
			return value, nil
		case <-time.After(s.Every):
		}
	}
}

// ended is nil where ctx's end is all that went wrong.
func ended(ctx context.Context, err error, begun bool) error {
	if begun && ctx.Err() != nil {
		return nil
	}
	return err
}

func (s Screen[T]) write(o Output, fresh T, before *T) error {
	if o.JSON {
		return json.NewEncoder(o.Out).Encode(fresh)
	}
	for _, line := range s.Lines(fresh, before) {
		if _, err := fmt.Fprintln(o.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func (s Screen[T]) ask(ctx context.Context) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Ask(ctx)
}
