// Command program is a program of somebody else that runs the type shop.invoice beside
// the service, for a test that kills it. Each job says that it is half done and waits for
// a file, named like its number, in the folder GATE.
package main
