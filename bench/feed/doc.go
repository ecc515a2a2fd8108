// Command feed measures how soon a row runs that another program inserts into the
// jobs table: from the return of its INSERT to the first line of its handler, by
// every way in which the service notices it, and what each way costs while nothing
// comes.
//
// Worker, watcher and the program that inserts are in one process, so that one
// clock measures; they share nothing but the database, the socket and the files.
package main
