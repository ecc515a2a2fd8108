// Package systemd speaks to the service manager that started the process: ready,
// alive, stopping. It starts and stops nothing itself, and does nothing where
// there is no systemd.
package systemd
