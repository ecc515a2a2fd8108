// Command beside measures cmsjobs beside its peers in one run – pictures beside
// sharp and disintegration/imaging, sitemaps beside npm's sitemap, dumps beside
// mariadb-dump and mydumper – and writes the ratios into docs/benchmarks.md. The
// measurements are the benchmarks of the packages; this program runs them and
// sets their figures next to each other. The queue has bench/queue.
//
// A peer that is not installed is left out, and the section says so.
package main
