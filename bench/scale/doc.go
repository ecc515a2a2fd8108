// Command scale says how the cost of claiming grows. It measures what a claim and
// a settlement cost its own MariaDB, by waiting rows and by claimers at the
// same time, and then lets a simulation fed with these figures run as many
// workers as nobody has: to ten thousand processes.
package main
