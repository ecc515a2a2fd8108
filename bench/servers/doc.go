// Package servers starts database servers for measurements, and reads how much
// processor time they use. It does not measure anything itself.
package servers
