// Command lighthouse measures pages of the demo with Lighthouse and fails where a score
// is too low. package.json names the version of Lighthouse.
package main
