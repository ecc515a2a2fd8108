// Command mail measures how many mails a second a worker of cmsjobs sends, beside
// plain loops that send the same mails to the same server on this host. A loop
// keeps no queue and no ledger, and it forgets what it did.
//
// Everything is run as a user runs it: the worker is the program bin/cmsjobs on
// a MariaDB with durable commits, the mails are rows of the table jobs.
package main
