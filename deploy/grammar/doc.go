// Command grammar keeps the statements that the program sends to MySQL and
// MariaDB, so that a parser of MySQL's older grammar reads each of them.
//
// corpus.txt holds one statement a line, with its values replaced; make corpus
// records it again from the general log of a server on which the tests run. The
// test of this package parses each line with TiDB's parser, which knows the
// grammar of MySQL 5.7 and 8.0: a statement that only a newer server understands
// fails there. exceptions.txt lists what that parser does not know, each with
// its reason. It is a separate module: nothing of it is in the product.
package main
