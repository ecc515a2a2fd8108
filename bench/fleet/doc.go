// Command fleet measures many worker processes on one database: jobs a second,
// processor time of server and clients a job, and how many places a job is
// overtaken. It starts its own servers, runs each worker as an operating-system
// process with the default queues, and puts Laravel's workers, River and
// graphile-worker beside them, each with the best settings that are known. A bare
// loop of the statements that a job needs shows what a server has to give.
//
// It is not bench/queue, which measures one process against its peers, and not
// bench/scale, which measures single claims.
package main
