// The program cmsjobs: background jobs for a CMS.
package main

import "os"

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version = "dev"

func main() {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	os.Exit(execute(self, version, os.Args[1:]))
}
