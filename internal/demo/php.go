package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

// phpQueue is the queue of the demo's jobs of PHP. Nobody works on it: the demo needs
// no PHP, and what became of these jobs is written as a pool of PHP processes does.
const phpQueue = "php"

// phpRun is a job of PHP's and how it ended; no outcome is that it waits.
type phpRun struct {
	class     string
	model     string // of its property
	id        int
	batched   bool
	outcome   php.Outcome
	took      time.Duration
	lines     []string
	exception string
}

// phpRuns are what a shop would have dispatched.
var phpRuns = []phpRun{
	{class: `App\Jobs\SendInvoice`, model: `App\Models\Order`, id: 1041, outcome: php.Deleted,
		took: 184 * time.Millisecond, lines: []string{"invoice 1041 rendered", "sent to reader@demo.example"}},
	{class: `App\Jobs\SendInvoice`, model: `App\Models\Order`, id: 1042, outcome: php.Deleted,
		took: 171 * time.Millisecond, lines: []string{"invoice 1042 rendered", "sent to editor@demo.example"}},
	{class: `App\Jobs\RefreshStock`, model: `App\Models\Product`, id: 12, outcome: php.Deleted,
		took: 42 * time.Millisecond},
	{class: `App\Jobs\ImportProducts`, model: `App\Models\Supplier`, id: 3, batched: true, outcome: php.Deleted,
		took: 2300 * time.Millisecond, lines: []string{"500 of 500 lines"}},
	{class: `App\Jobs\ImportProducts`, model: `App\Models\Supplier`, id: 4, batched: true, outcome: php.Failed,
		took: 610 * time.Millisecond, lines: []string{"117 of 500 lines"}, exception: importFault},
	{class: `App\Jobs\ImportProducts`, model: `App\Models\Supplier`, id: 5, batched: true},
	{class: `App\Jobs\SendInvoice`, model: `App\Models\Order`, id: 1043},
}

// importFault is an exception as PHP writes one.
const importFault = `RuntimeException: Line 118 of supplier-4.csv has 7 columns, 9 are expected in ` +
	`/var/www/shop/app/Import/Csv.php:64
Stack trace:
#0 /var/www/shop/app/Import/Csv.php(41): App\Import\Csv->columns(Array)
#1 /var/www/shop/app/Jobs/ImportProducts.php(38): App\Import\Csv->read('supplier-4.csv')
#2 /var/www/shop/vendor/laravel/framework/src/Illuminate/Container/BoundMethod.php(36): ` +
	`App\Jobs\ImportProducts->handle(Object(App\Import\Csv))
#3 /var/www/shop/vendor/laravel/framework/src/Illuminate/Bus/Dispatcher.php(129): ` +
	`Illuminate\Container\Container->call(Array)
#4 /var/www/shop/vendor/laravel/framework/src/Illuminate/Queue/Worker.php(439): ` +
	`Illuminate\Queue\Jobs\Job->fire()
#5 {main}`

// addPHP dispatches the jobs as Laravel does, claims them and writes how they ended.
func addPHP(ctx context.Context, r *app.Services, now time.Time) error {
	batch := uuid.NewString()
	runs := map[string]phpRun{}
	for _, x := range phpRuns {
		name := uuid.NewString()
		payload, err := x.payload(name, batch)
		if err != nil {
			return err
		}
		if x.outcome != 0 {
			runs[name] = x
		}
		if _, err := r.DB.ExecContext(ctx, `INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at,
			created_at) VALUES (?, ?, 0, NULL, ?, ?)`, phpQueue, payload, now.Unix(), now.Unix()); err != nil {
			return err
		}
	}
	failed, err := settlePHP(ctx, r, runs)
	if err != nil {
		return err
	}
	ids, err := json.Marshal(failed)
	if err != nil {
		return err
	}
	// Laravel counts a failed job as pending.
	_, err = r.DB.ExecContext(ctx, `INSERT INTO job_batches (id, name, total_jobs, pending_jobs, failed_jobs,
		failed_job_ids, created_at) VALUES (?, 'Import of products', 3, 2, 1, ?, ?)`, batch, string(ids), now.Unix())
	return err
}

// settlePHP writes the ends of jobs, by their UUIDs, and releases the others. It returns
// which failed.
func settlePHP(ctx context.Context, r *app.Services, runs map[string]phpRun) (failed []string, err error) {
	source, err := r.PHPRows("demo")
	if err != nil {
		return nil, err
	}
	claimed, err := source.Claim(ctx, php.Request{Queue: phpQueue, Limit: len(phpRuns), Lease: time.Minute})
	if err != nil {
		return nil, err
	}
	var ends []php.End
	var rest []php.Job
	for _, j := range claimed {
		x, ended := runs[j.Job.UUID]
		if !ended {
			rest = append(rest, j)
			continue
		}
		e := php.End{Job: j, Outcome: x.outcome, Exception: x.exception, Worker: "demo", Duration: x.took}
		for _, text := range x.lines {
			e.Lines = append(e.Lines, jobs.LogLine{At: r.Now(), Text: text})
		}
		if ends = append(ends, e); x.outcome == php.Failed {
			failed = append(failed, j.Job.UUID)
		}
	}
	results, err := source.Settle(ctx, ends)
	if err != nil {
		return nil, err
	}
	for _, err := range results {
		if err != nil {
			return nil, err
		}
	}
	return failed, source.Release(ctx, rest)
}

// payload is the job as Laravel writes it.
func (x phpRun) payload(name, batch string) (string, error) {
	property := strings.ToLower(x.model[strings.LastIndex(x.model, `\`)+1:])
	properties := []string{serialized(property), fmt.Sprintf(`O:45:"Illuminate\Contracts\Database\ModelIdentifier":4:{`+
		`s:5:"class";%ss:2:"id";i:%d;s:9:"relations";a:0:{}s:10:"connection";N;}`, serialized(x.model), x.id)}
	if x.batched {
		properties = append(properties, serialized("batchId"), serialized(batch))
	}
	data, err := json.Marshal(map[string]any{"uuid": name, "displayName": x.class, "maxTries": 1, "timeout": 120,
		"job": `Illuminate\Queue\CallQueuedHandler@call`, "data": map[string]any{"commandName": x.class,
			"command": fmt.Sprintf(`O:%d:"%s":%d:{%s}`, len(x.class), x.class, len(properties)/2,
				strings.Join(properties, ""))}})
	return string(data), err
}

// serialized is a text as PHP's serialize writes it.
func serialized(text string) string { return fmt.Sprintf(`s:%d:"%s";`, len(text), text) }
