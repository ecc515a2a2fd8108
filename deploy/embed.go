package deploy

import _ "embed"

//go:embed cmsjobs.service
var unit string

//go:embed cmsjobs.supervisor.conf
var supervisor string

// Unit is the systemd unit, for a site in /var/www/site.
func Unit() string { return unit }

// Supervisor is supervisord's configuration, for a site in /var/www/site.
func Supervisor() string { return supervisor }
