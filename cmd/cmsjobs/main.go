package main

import (
	"os"

	"github.com/cmsjobs/cmsjobs/internal/cli"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version = "dev"

func main() {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	os.Exit(cli.Execute(self, version, os.Args[1:]))
}
