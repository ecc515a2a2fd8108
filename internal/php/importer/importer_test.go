package importer_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
	"github.com/cmsjobs/cmsjobs/internal/php/importer"
)

// documented is the example of Laravel's documentation, with another connection.
const documented = `[program:laravel-worker]
process_name=%(program_name)s_%(process_num)02d
command=php /home/forge/app.com/artisan queue:work CONNECTION --sleep=3 --tries=3 --max-time=3600
autostart=true
autorestart=true
stopasgroup=true
killasgroup=true
user=forge
numprocs=8
redirect_stderr=true
stdout_logfile=/home/forge/app.com/worker.log
stopwaitsecs=3600
`

func TestTheSupervisorOfLaravelsDocumentation(t *testing.T) {
	var p importer.Plan
	if err := p.Supervisor("/etc/supervisor/conf.d/laravel.conf", strings.Replace(documented, "CONNECTION", "database",
		1)); err != nil {
		t.Fatal(err)
	}
	const want = `php:
  enabled: true
  artisan: /home/forge/app.com/artisan
  connection: database
  queues:
    default: {processes: 8, tries: 3, max_time: 1h}
`
	if got := p.YAML(); got != want || !slices.Contains(p.Notes, "laravel.conf, laravel-worker ran as the user forge: "+
		"cmsjobs must run as this user, or files have the wrong owner") {
		t.Errorf("%s%q", got, p.Notes)
	}
	var other importer.Plan
	if err := other.Supervisor("x.conf", strings.Replace(documented, "CONNECTION", "sqs", 1)); err != nil ||
		!other.Empty() || len(other.Notes) != 1 {
		t.Errorf("%+v, %v", other, err)
	}
}

func TestUnusualSupervisors(t *testing.T) {
	const text = `; the workers
[unix_http_server]
file=/run/supervisor.sock
command=php artisan queue:work ; not a program

[program:mail]
directory = /srv/site
command = /usr/bin/php8.2 artisan queue:work --queue "mail, default"
    --tries 5 --timeout=90 --memory=256
    --backoff=3 --max-jobs=500 ; two queues
numprocs=3
[program:listen]
command=php8.1 /srv/site/artisan queue:listen database --queue=default --tries=1
[program:horizon]
command=php /srv/site/artisan horizon
[program:web]
command=/usr/sbin/nginx -g "daemon off;"
`
	var p importer.Plan
	if err := p.Supervisor("site.conf", text); err != nil {
		t.Fatal(err)
	}
	const want = `php:
  enabled: true
  binary: /usr/bin/php8.2
  artisan: /srv/site/artisan
  connection: database
  queues:
    mail: {processes: 2, tries: 5, timeout: 90s, memory: 256MiB, max_jobs: 500}
    default: {processes: 2, tries: 5, timeout: 90s, memory: 256MiB, max_jobs: 500}
`
	notes := strings.Join(p.Notes, "\n")
	if got := p.YAML(); got != want {
		t.Error(got)
	}
	for _, part := range []string{"mail takes mail before", "--backoff has no setting", "other limits",
		"runs Horizon"} {
		if !strings.Contains(notes, part) {
			t.Errorf("no note of %q in\n%s", part, notes)
		}
	}
	if err := p.Supervisor("x", strings.Repeat("x", importer.MaxFile+1)); !errors.Is(err, importer.ErrTooLarge) {
		t.Error(err)
	}
}

// horizon is config/horizon.php as Horizon publishes it, with a second supervisor.
const horizon = `<?php

use App\Jobs\Heartbeat;
use App\Jobs\Reports as R;
use Illuminate\Support\Str;

return [
    'silenced' => [Heartbeat::class, \App\Jobs\Ping::class, R\Daily::class, 'App\Jobs\It\'s'],
    'silenced_tags' => ['noise'],
    'domain' => env('HORIZON_DOMAIN'),
    'prefix' => env('HORIZON_PREFIX', Str::slug(env('APP_NAME', 'laravel'), '_').'_horizon:'),
    'waits' => ['redis:default' => 60],
    'defaults' => [
        'supervisor-1' => [
            'connection' => 'redis',
            'queue' => ['default'],
            'balance' => 'auto',
            'autoScalingStrategy' => 'time',
            'maxProcesses' => 1,
            'maxTime' => 0,
            'maxJobs' => 0,
            'memory' => 128,
            'tries' => 1,
            'timeout' => 60,
            'nice' => 0,
        ],
    ],
    'environments' => [
        'production' => [
            'supervisor-1' => ['maxProcesses' => env('WORKERS', 10), 'balanceMaxShift' => 1],
            'long' => ['connection' => 'database', 'queue' => 'import', 'processes' => 2, 'timeout' => 3600, 'nice' => 5],
        ],
        'local' => ['supervisor-1' => ['maxProcesses' => 3]],
    ],
];
`

// silenced is what the plan says of horizon's.
const silenced = `  silenced:
    - 'App\Jobs\Heartbeat'
    - 'App\Jobs\Ping'
    - 'App\Jobs\Reports\Daily'
    - 'App\Jobs\It''s'
`

func TestHorizonsConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "horizon.php"), []byte(horizon), 0o600); err != nil {
		t.Fatal(err)
	}
	for environment, want := range map[string]string{
		"production": `php:
  enabled: true
SILENCED  queues:
    default: {processes: 12, tries: 1, timeout: 1m, memory: 128MiB}
    import: {processes: 2, timeout: 1h, nice: 5}
`,
		"local": `php:
  enabled: true
SILENCED  queues:
    default: {processes: 3, tries: 1, timeout: 1m, memory: 128MiB}
`,
		"staging": `php:
  enabled: true
SILENCED  queues:
    default: {processes: 1, tries: 1, timeout: 1m, memory: 128MiB}
`,
	} {
		want = strings.Replace(want, "SILENCED", silenced, 1)
		c, err := laravel.Open(dir, map[string]string{"WORKERS": "12"}, "horizon")
		if err != nil {
			t.Fatal(err)
		}
		var p importer.Plan
		p.Horizon(c, environment)
		if got := p.YAML(); got != want || !strings.Contains(strings.Join(p.Notes, "\n"), `the connection "redis"`) ||
			!strings.Contains(strings.Join(p.Notes, "\n"), "silences tags") {
			t.Errorf("%s: %s%q", environment, got, p.Notes)
		}
	}
	none, err := laravel.Open(t.TempDir(), nil, "horizon")
	if err != nil {
		t.Fatal(err)
	}
	var p importer.Plan
	if p.Horizon(none, "production"); !p.Empty() {
		t.Errorf("%+v", p)
	}
}

func FuzzSupervisor(f *testing.F) {
	f.Add(documented)
	f.Add("[program:x]\ncommand=php artisan queue:work --queue 'a,b' --tries\n numprocs=99999999999\n\tmore")
	f.Fuzz(func(t *testing.T, text string) {
		var p importer.Plan
		if err := p.Supervisor("x.conf", text); err != nil {
			return
		}
		if yaml := p.YAML(); strings.ContainsRune(yaml, 0) && !strings.ContainsRune(text, 0) {
			t.Errorf("%q", yaml)
		}
		for _, q := range p.Queues {
			if q.Name == "" || q.Processes < 1 {
				t.Errorf("%+v", q)
			}
		}
	})
}
