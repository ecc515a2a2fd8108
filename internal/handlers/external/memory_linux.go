package external

import (
	"os/exec"
	"strconv"
)

// limitMemory bounds the address space of a program and of what it starts. A shell sets the
// bound and becomes the program: one that was set from outside would come after the program
// has begun, and what it started first would have none.
func limitMemory(cmd *exec.Cmd, most int64) error {
	if cmd.Err != nil {
		return cmd.Err // it is nowhere
	}
	const shell = "/bin/sh"
	cmd.Args = append([]string{shell, "-c", `ulimit -v "$0" && exec "$@"`, strconv.FormatInt(most/1024, 10), cmd.Path},
		cmd.Args[1:]...)
	cmd.Path = shell
	return nil
}
