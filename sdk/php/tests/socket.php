<?php

// Enqueues in and outside of transactions and prints how long a datagram takes,
// in microseconds. A Go test beside it listens.

$app = require __DIR__ . '/application.php';

$app['config']->set('queue', ['default' => 'database', 'connections' => [
    'database' => ['driver' => 'database', 'table' => 'jobs', 'queue' => 'default', 'connection' => null], 'redis' => ['driver' => 'redis'],
]]);

// step waits for the Go test to look at what was sent.
$step = function (string $name) {
    echo $name, "\n";
    fgets(STDIN);
};

cmsjobs_enqueue('cache.clear');
$step('plain');
$app['db']->transaction(function () use ($step) {
    cmsjobs_enqueue('cache.clear');
    $step('open');
});
$step('committed');
try {
    $app['db']->transaction(function () {
        cmsjobs_enqueue('cache.clear');
        throw new RuntimeException('rolled back');
    });
} catch (RuntimeException $e) {
}
$step('rolled back');
$app['events']->dispatch(new Illuminate\Queue\Events\JobQueued('database', 1, 'a job'));
$step('of Laravel');
$app['events']->dispatch(new Illuminate\Queue\Events\JobQueued('redis', 1, 'a job'));
$step('of Redis');

eval('namespace Botble\Base\Events; class UpdatedContentEvent { public $data; }');
$edited = new Botble\Base\Events\UpdatedContentEvent();
$edited->data = new class { // nothing with a status: no sitemap is asked for
    public function getTable() { return 'posts'; }

    public function getKey() { return 7; }
};
$app['events']->dispatch($edited);
$step('content');

$socket = $app->make(CmsJobs\Laravel\Socket::class);
for ($i = 0; $i < 100; $i++) {
    $socket->notify(); // warm
}
$begun = hrtime(true);
for ($i = 0; $i < 1000; $i++) {
    $socket->notify();
}
$took = (hrtime(true) - $begun) / 1e6;
$nobody = new CmsJobs\Laravel\Socket('/nowhere/cmsjobs.sock');
$begun = hrtime(true);
for ($i = 0; $i < 1000; $i++) {
    $nobody->notify();
}
printf("%.1f %.1f\n", $took, (hrtime(true) - $begun) / 1e6);
