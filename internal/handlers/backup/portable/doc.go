// Package portable knows what a MySQL or MariaDB dump needs of the server that takes
// it: whether it can be restored there at all, what has to be written otherwise for
// it, and what will not be as it was. It changes nothing on a server.
//
// What it cannot know by looking (an expression that one of them does not
// understand) a rehearsal shows, which is the caller's: the same statements without
// rows, in a temporary database.
package portable
