package external

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// CommandResult is what a run leaves.
type CommandResult struct {
	Exit       int    `json:"exit"`
	Output     string `json:"output"` // standard output and error, as they came
	DurationMS int64  `json:"duration_ms"`
}

// closing is how long what a program has started may keep its output open after it.
const closing = 5 * time.Second

func (h *Handler) run(ctx context.Context, _ jobs.Job, p Payload) error {
	c := h.c.Commands[p.Name]
	timeout := cmp.Or(c.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it ran longer than %v "+
		"(external.commands.%s.timeout)",
		timeout, p.Name))
	defer cancel()
	out := &tail{most: cmp.Or(c.Output, DefaultOutput)}
	cmd := exec.CommandContext(ctx, c.Program, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.Dir, h.environment(c), out, out, closing
	if err := prepare(cmd, c.User); err != nil {
		return jobs.Permanent(fmt.Errorf("running %s as %s: %w", p.Name, c.User, err))
	}
	if c.Memory > 0 {
		if err := limitMemory(cmd, c.Memory); err != nil {
			return fmt.Errorf("limiting the memory of %s: %w", p.Name, err)
		}
	}
	started := h.c.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	err := cmd.Wait()
	result := CommandResult{Exit: cmd.ProcessState.ExitCode(), Output: out.text(),
		DurationMS: h.c.Now().Sub(started).Milliseconds()}
	if kept := jobs.SetResult(ctx, result); kept != nil {
		return kept
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s was ended: %w", p.Name, context.Cause(ctx))
	}
	return fmt.Errorf("%s failed (%w): %s", p.Name, err, last(result.Output))
}

// environment is the entry's own, and the usual PATH where it has none.
func (h *Handler) environment(c Command) []string {
	env := map[string]string{"PATH": h.c.Path}
	maps.Copy(env, c.Env)
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// last is the last line of an output, which usually says what went wrong.
func last(output string) string {
	output = strings.TrimSpace(output)
	return jobs.PlainText(output[strings.LastIndexByte(output, '\n')+1:], 500)
}

// Summary implements jobs.Summarizer.
func (r CommandResult) Summary() (s phrase.Summary) {
	s.Say("The program ended with exit code %s after %s.", r.Exit, time.Duration(r.DurationMS)*time.Millisecond)
	phrase.Lines(&s, phrase.Columns("Output"), lines(r.Output))
	return s
}

// lines are the text as a list, nil when there is none.
func lines(text string) []string {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return []string{text}
}
