// Package cmsjobs_test tests what no package can by itself: the rules of the source
// that the compiler does not know (who may import whom, what nobody may do, what
// every package has), what the documents, licences and files of deploy/ say, and
// the procedures of docs/operating.md, carried out with the built program.
package cmsjobs_test
