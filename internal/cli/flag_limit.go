package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

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
