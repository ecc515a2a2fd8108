package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

// report is the section of the page.
func report(list []verdict) string {
	var b strings.Builder
	today, good := time.Now().UTC().Format(time.DateOnly), len(list)-len(unheld(list))
	fmt.Fprintf(&b, "%s, %s: `make mutants`, %d guards, %d held.\n\n", today, page.Machine(), len(list), good)
	b.WriteString("| | guard, in | its test, without the guard |\n|---|---|---|\n")
	for _, v := range list {
		fmt.Fprintf(&b, "| %s | %s, `%s` | `%s` %s |\n", v.promise, v.name, v.file, v.test, v.outcome)
	}
	return b.String()
}

// unheld are the guards that no test noticed to be gone.
func unheld(list []verdict) []verdict {
	var rest []verdict
	for _, v := range list {
		if v.outcome != held {
			rest = append(rest, v)
		}
	}
	return rest
}

func missed(list []verdict) error {
	if rest := unheld(list); len(rest) > 0 {
		return fmt.Errorf("%d of %d guards are not held by their tests", len(rest), len(list))
	}
	return nil
}
