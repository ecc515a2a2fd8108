// Command queue measures cmsjobs' queue beside its peers, all in one run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
)

func main() {
	n := flag.Int("n", 50000, "jobs")
	slots := flag.Int("slots", 100, "")
	prefetch := flag.Int("prefetch", 2000, "")
	prof := flag.String("prof", "", "")
	flag.Parse()
	ctx := context.Background()
	s, err := startMariaDB()
	if err != nil {
		panic(err)
	}
	defer s.Stop()
	o, err := newOurs(ctx, s, true)
	if err != nil {
		panic(err)
	}
	if *prof != "" {
		f, _ := os.Create(*prof)
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	l, err := newLaravel(ctx, s)
	if err != nil {
		panic(err)
	}
	c, err := l.drain(ctx, 1500)
	fmt.Printf("laravel %.0f/s client %.1f server %.1f us/job %v\n", c.rate(), c.clientJob(), c.serverJob(), err)
	fmt.Println("pid", s.pid)
	for range 3 {
		before := questions(o)
		c, err := o.drain(ctx, *n, *slots, *prefetch)
		if err != nil {
			panic(err)
		}
		fmt.Printf("drain %d/%d: %.0f/s client %.1f server %.1f us/job; statements %v per 1000\n", *slots, *prefetch, c.rate(), c.clientJob(), c.serverJob(), diff(before, questions(o), *n))
	}
}

func questions(o *ours) map[string]int {
	m := map[string]int{}
	rows, _ := o.db.Query("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select','Com_insert','Com_update','Com_delete','Com_commit','Com_begin','Innodb_os_log_fsyncs','Questions')")
	defer rows.Close()
	for rows.Next() {
		var k string
		var v int
		rows.Scan(&k, &v)
		m[k] = v
	}
	return m
}
func diff(a, b map[string]int, n int) map[string]float64 {
	m := map[string]float64{}
	for k := range b {
		m[k] = float64(b[k]-a[k]) * 1000 / float64(n)
	}
	return m
}
