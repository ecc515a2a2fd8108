package config

import (
	"net/netip"
	"time"
)

// External are the programs and addresses that jobs may use (command.run,
// http.call), by the names that payloads give. The handler checks the entries.
type External struct {
	Commands map[string]ExternalCommand `koanf:"commands"`
	Calls    map[string]ExternalCall    `koanf:"calls"`
	// AllowPrivate are networks that calls may reach besides public hosts.
	AllowPrivate []string `koanf:"allow_private"`
}

// ExternalCommand is a program that jobs may run.
type ExternalCommand struct {
	Program string            `koanf:"program"`
	Args    []string          `koanf:"args"`
	Dir     string            `koanf:"dir"`
	Env     map[string]Secret `koanf:"env"`
	User    string            `koanf:"user"`
	Timeout time.Duration     `koanf:"timeout"`
	Memory  Size              `koanf:"memory"`
	Output  Size              `koanf:"output"`
}

// ExternalCall is a request that jobs may send.
type ExternalCall struct {
	URL     string            `koanf:"url"`
	Method  string            `koanf:"method"`
	Body    string            `koanf:"body"`
	Headers map[string]Secret `koanf:"headers"`
	Secret  Secret            `koanf:"secret"`
	Expect  []int             `koanf:"expect"`
	Timeout time.Duration     `koanf:"timeout"`
	Output  Size              `koanf:"output"`
}

func defaultExternal() External {
	return External{Commands: map[string]ExternalCommand{}, Calls: map[string]ExternalCall{}}
}

func (e External) check(r *report) { r.networks("external/allow_private", e.AllowPrivate) }

// Networks are AllowPrivate as values; the configuration was checked.
func (e External) Networks() []netip.Prefix { return networks(e.AllowPrivate) }
