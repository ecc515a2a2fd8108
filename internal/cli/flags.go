package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// filterFlags adds the flags that choose jobs, those of the API's filter.
func filterFlags(c *cobra.Command, f *ops.Filter, withStatus bool) {
	if withStatus {
		c.Flags().StringSliceVar(&f.Status, "status", nil, "queued, processing, completed, failed, cancelled")
	}
	c.Flags().StringSliceVar(&f.Type, "type", nil, "types")
	c.Flags().StringSliceVar(&f.Queue, "queue", nil, "queues")
	c.Flags().StringVar(&f.Text, "text", "", "text in the payload or the error")
	c.Flags().StringVar(&f.Cause, "cause", "", "fingerprint of a failure (failed groups)")
	c.Flags().StringVar(&f.Since, "since", "", "not before: a time, or so long ago (2h, 3d)")
	c.Flags().StringVar(&f.Until, "until", "", "before: a time, or so long ago")
}

// filter reads the flags of a filter.
func (a *commandLine) filter(f ops.Filter) (jobs.Filter, error) {
	filter, err := f.Parse(a.Now())
	return filter, usage(err)
}

// usage makes a wrong argument of what a parser refuses.
func usage(err error) error {
	if r := (*ops.Refusal)(nil); errors.As(err, &r) && errors.Is(r, jobs.ErrInvalid) {
		return app.UsageError{Err: err}
	}
	return err
}

// pageFlags adds the flags that choose a part of a list.
func pageFlags(c *cobra.Command, p *jobs.Page) {
	limitFlag(c, &p.Limit, ops.DefaultLimit, "how many")
	c.Flags().StringVar(&p.Cursor, "cursor", "", "continue a list where it ended")
}

// unmaskedFlag lets the administrator of the host see what is masked.
func (a *commandLine) unmaskedFlag(c *cobra.Command) *cobra.Command {
	c.PersistentFlags().BoolVar(&a.unmasked, "unmasked", false, "show secrets in payloads and texts, too")
	return c
}

// limitFlag adds --limit: a number from 1.
func limitFlag(c *cobra.Command, into *int, fallback int, usage string) {
	*into = fallback
	c.Flags().Var((*limit)(into), "limit", usage)
}

// limit is a flag's value.
type limit int

// String implements pflag.Value.
func (l *limit) String() string { return strconv.Itoa(int(*l)) }

// Type implements pflag.Value.
func (l *limit) Type() string { return "int" }

// Set implements pflag.Value.
func (l *limit) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("write a number from 1, for example 50")
	}
	*l = limit(n)
	return nil
}
