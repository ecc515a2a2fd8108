// Package templates holds the texts that the service fills in: mails, admin
// pages and reports. Data only: who renders them parses them.
//
// Mails may be overridden one by one in a folder of the operator's; pages and
// reports are part of the program.
package templates
