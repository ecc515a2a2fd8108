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
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// benchRows is how many rows the deep benchmarks put before a claim:
// CMSJOBS_BENCH_ROWS, by default 100,000.
func benchRows() int {
	if n, err := strconv.Atoi(os.Getenv("CMSJOBS_BENCH_ROWS")); err == nil {
		return n
	}
	return 100_000
}

func benchVariants() []tablestest.Variant {
	return []tablestest.Variant{
		{Engine: jobstest.MariaDB, Layout: tables.Stock, Indexed: true},
		{Engine: jobstest.MySQL, Layout: tables.Stock, Indexed: true},
		{Engine: jobstest.MariaDB, Layout: tables.Stock},
		{Engine: jobstest.MySQL, Layout: tables.Stock},
		{Engine: jobstest.MariaDB, Layout: tables.Extended},
		{Engine: jobstest.MySQL, Layout: tables.Extended},
		{Engine: jobstest.PostgreSQL, Layout: tables.Stock, Indexed: true},
		{Engine: jobstest.SQLite, Layout: tables.Stock, Indexed: true},
	}
}

func benchStore(b *testing.B, v tablestest.Variant) *fixture {
	f := &fixture{Fixture: tablestest.Open(b, v, v.Database(b))}
	f.setStore(open1(b, f.DB, tables.Options{Registry: tablestest.Registry()}))
	return f
}

func (f *fixture) fill(n int, job func(i int) jobs.Spec) {
	f.T.Helper()
	for from := 0; from < n; from += 5000 {
		list := []jobs.Spec{}
		for i := from; i < min(from+5000, n); i++ {
			list = append(list, job(i))
		}
		f.MustEnqueue(list...)
	}
}

// BenchmarkDrain claims and settles no-op jobs with history, a claimer and a
// settler at work at the same time.
func BenchmarkDrain(b *testing.B) {
	for _, v := range benchVariants() {
		b.Run(v.String(), func(b *testing.B) {
			f := benchStore(b, v)
			total := max(b.N, 1)
			f.fill(total, func(int) jobs.Spec { return tablestest.Job(`{"force":false}`) })
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
				got, err := f.Claim(context.Background(), jobs.ClaimRequest{
					Worker: "host:1:x", Queues: []string{"default"}, Limit: 1000, Lease: time.Minute})
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
					f.fill(n, func(int) jobs.Spec { return tablestest.Job(`{}`) })
				case "delayed":
					f.fill(n, func(int) jobs.Spec { return tablestest.Job(`{}`).In(24 * time.Hour) })
				case "foreign":
					f.foreign(n)
				}
				f.fill(max(1000, b.N), func(int) jobs.Spec { return tablestest.Job(`{}`) })
				if scene == "snapshot" && v.Engine != jobstest.SQLite {
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
		if _, err := f.Settle(context.Background(), []jobs.Settlement{
			{Claimed: got[0], Outcome: jobs.Completed}}); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs/claim")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs/claim")
}

// foreign inserts rows of PHP's own by doubling.
func (f *fixture) foreign(n int) {
	f.InsertRaw("default", php)
	columns := f.Store.tables.Layout.Insert()
	for have := 1; have < n; have *= 2 {
		f.DB.MustExec(fmt.Sprintf("INSERT INTO jobs (%s) SELECT %s FROM jobs LIMIT %d", columns, columns, n-have))
	}
}

// snapshot opens a long transaction, as a backup does.
func (f *fixture) snapshot() func() {
	x := f.DB.MustBeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	var n int
	if err := x.Get(&n, "SELECT COUNT(*) FROM jobs"); err != nil {
		f.T.Fatal(err)
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
							if _, err := f.Enqueue(context.Background(),
								tablestest.Job(`{"force":false}`)); err != nil {
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
