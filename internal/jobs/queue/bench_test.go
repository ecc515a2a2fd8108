package queue

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// benchRows is how many rows the deep benchmarks put before a claim:
// CMSJOBS_BENCH_ROWS, by default 100,000.
func benchRows() int {
	if n, err := strconv.Atoi(os.Getenv("CMSJOBS_BENCH_ROWS")); err == nil {
		return n
	}
	return 100_000
}

func benchVariants() []variant {
	return []variant{
		{engine: jobstest.MariaDB, layout: tables.Stock, mode: tables.Skip, indexed: true},
		{engine: jobstest.MySQL, layout: tables.Stock, mode: tables.Skip, indexed: true},
		{engine: jobstest.MariaDB, layout: tables.Stock, mode: tables.CAS, indexed: true},
		{engine: jobstest.MySQL, layout: tables.Stock, mode: tables.CAS, indexed: true},
		{engine: jobstest.MariaDB, layout: tables.Stock, mode: tables.Skip},
		{engine: jobstest.MySQL, layout: tables.Stock, mode: tables.Skip},
		{engine: jobstest.MariaDB, layout: tables.Extended, mode: tables.Skip},
		{engine: jobstest.MySQL, layout: tables.Extended, mode: tables.Skip},
		{engine: jobstest.PostgreSQL, layout: tables.Stock, mode: tables.Skip, indexed: true},
		{engine: jobstest.SQLite, layout: tables.Stock, mode: tables.Skip, indexed: true},
	}
}

func benchStore(b *testing.B, v variant) *fixture {
	f := &fixture{t: b, v: v, db: v.database(b), clock: &clock{}}
	f.Store = open1(b, f.db, tables.Options{Registry: registry(), Mode: v.mode})
	return f
}

func (f *fixture) fill(n int, make func(i int) jobs.Spec) {
	f.t.Helper()
	for from := 0; from < n; from += 5000 {
		list := []jobs.Spec{}
		for i := from; i < min(from+5000, n); i++ {
			list = append(list, make(i))
		}
		f.enqueue(list...)
	}
}

// BenchmarkDrain claims and settles no-op jobs with history, a claimer and a
// settler at work at the same time.
func BenchmarkDrain(b *testing.B) {
	for _, v := range benchVariants() {
		b.Run(v.String(), func(b *testing.B) {
			f := benchStore(b, v)
			total := max(b.N, 1)
			f.fill(total, func(int) jobs.Spec { return job(`{"force":false}`) })
			b.ResetTimer()
			begun := time.Now()
			claimed := make(chan []jobs.Claimed, 2)
			var settler sync.WaitGroup
			settler.Go(func() {
				for batch := range claimed {
					ends := make([]jobs.Settlement, len(batch))
					for i, c := range batch {
						ends[i] = jobs.Settlement{Claimed: c, Outcome: jobs.Completed, Worker: "host:1:x"}
					}
					errs, err := f.Settle(context.Background(), ends)
					if err != nil {
						b.Error(err)
					}
					for _, err := range errs {
						if err != nil {
							b.Error(err)
						}
					}
				}
			})
			for done := 0; done < total; {
				got, err := f.Claim(context.Background(), jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 1000, Lease: time.Minute})
				if err != nil {
					b.Fatal(err)
				}
				done += len(got)
				claimed <- got
			}
			close(claimed)
			settler.Wait()
			b.ReportMetric(float64(total)/time.Since(begun).Seconds(), "jobs/s")
		})
	}
}

// BenchmarkClaim claims and settles one job at a time with many rows before or
// behind it.
func BenchmarkClaim(b *testing.B) {
	n := benchRows()
	for _, v := range benchVariants() {
		for _, scene := range []string{"1k", "deep", "delayed", "foreign", "snapshot"} {
			b.Run(v.String()+"/"+scene, func(b *testing.B) {
				f := benchStore(b, v)
				switch scene {
				case "deep", "snapshot":
					f.fill(n, func(int) jobs.Spec { return job(`{}`) })
				case "delayed":
					f.fill(n, func(int) jobs.Spec { return job(`{}`).In(24 * time.Hour) })
				case "foreign":
					f.foreign(n)
				}
				f.fill(max(1000, b.N), func(int) jobs.Spec { return job(`{}`) })
				if scene == "snapshot" && v.engine != jobstest.SQLite {
					defer f.snapshot()()
				}
				f.oneByOne(b)
			})
		}
	}
}

func (f *fixture) oneByOne(b *testing.B) {
	took := make([]time.Duration, 0, b.N)
	ask := jobs.ClaimRequest{Worker: "host:1:x", Queues: []string{"default"}, Limit: 1, Lease: time.Minute}
	b.ResetTimer()
	for range b.N {
		begun := time.Now()
		got, err := f.Claim(context.Background(), ask)
		took = append(took, time.Since(begun))
		if err != nil || len(got) != 1 {
			b.Fatalf("%d claimed, %v", len(got), err)
		}
		if _, err := f.Settle(context.Background(), []jobs.Settlement{{Claimed: got[0], Outcome: jobs.Completed}}); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs/claim")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs/claim")
}

// foreign inserts rows of PHP's own by doubling.
func (f *fixture) foreign(n int) {
	f.insertRaw("default", php)
	columns := f.Store.Layout.Insert()
	for have := 1; have < n; have *= 2 {
		f.db.MustExec(fmt.Sprintf("INSERT INTO jobs (%s) SELECT %s FROM jobs LIMIT %d", columns, columns, n-have))
	}
}

// snapshot opens a long transaction, as a backup does.
func (f *fixture) snapshot() func() {
	x := f.db.MustBeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	var n int
	if err := x.Get(&n, "SELECT COUNT(*) FROM jobs"); err != nil {
		f.t.Fatal(err)
	}
	return func() { tables.Rollback(x) }
}

// BenchmarkEnqueue enqueues one job a call, from one caller and from ten.
func BenchmarkEnqueue(b *testing.B) {
	for _, v := range benchVariants() {
		for _, callers := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("%s/%d", v, callers), func(b *testing.B) {
				f := benchStore(b, v)
				var group sync.WaitGroup
				b.ResetTimer()
				begun := time.Now()
				for range callers {
					group.Go(func() {
						for range max(b.N/callers, 1) {
							if _, err := f.Enqueue(context.Background(), job(`{"force":false}`)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(max(b.N/callers, 1)*callers)/time.Since(begun).Seconds(), "jobs/s")
			})
		}
	}
}
