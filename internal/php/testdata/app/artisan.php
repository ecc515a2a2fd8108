<?php
// A Laravel application of Debian's packages, or of PROBE_LARAVEL, with the package cmsjobs/laravel in
// it, and jobs that misbehave: php artisan.php queue:work|push|push-noop …
// The database comes by DB_PORT and DB_DATABASE, PROBE_DIR is a folder of the
// test's: cache, and events.log, to which every event of every job goes.

error_reporting(E_ALL & ~E_DEPRECATED & ~E_NOTICE & ~E_WARNING);
if (getenv('PROBE_LARAVEL')) { // an application's folder, with what composer installed
    require getenv('PROBE_LARAVEL') . '/vendor/autoload.php';
} else {
    foreach (['/usr/share/php/Illuminate/autoload.php', '/usr/share/php/Illuminate/Foundation/autoload.php'] as $file) {
        if (is_file($file)) {
            require_once $file;
        }
    }
}
$sdk = dirname(__DIR__, 4) . '/sdk/php/';
spl_autoload_register(function (string $class) use ($sdk) {
    $file = $sdk . 'src/' . str_replace('\\', '/', substr($class, strlen('CmsJobs\\Laravel\\'))) . '.php';
    if (strncmp($class, 'CmsJobs\\Laravel\\', 16) === 0 && is_file($file)) {
        require $file;
    }
});
require_once $sdk . 'src/helpers.php';
require __DIR__ . '/Probe.php';

$dir = getenv('PROBE_DIR');
$app = new Illuminate\Foundation\Application($dir);
$app->instance('config', new Illuminate\Config\Repository([
    'app' => ['key' => 'base64:' . base64_encode(str_repeat('k', 32)), 'cipher' => 'AES-256-CBC', 'env' => 'production'],
    'database' => ['default' => 'mysql', 'connections' => ['mysql' => [
        'driver' => 'mysql', 'host' => '127.0.0.1', 'port' => getenv('DB_PORT'), 'database' => getenv('DB_DATABASE'),
        'username' => 'root', 'password' => '', 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '', 'strict' => true,
    ]]],
    'queue' => [
        'default' => 'database',
        'connections' => ['database' => ['driver' => 'database', 'table' => 'jobs', 'queue' => 'default', 'retry_after' => (int) (getenv('RETRY_AFTER') ?: 90)]],
        'batching' => ['database' => 'mysql', 'table' => 'job_batches'],
        'failed' => ['driver' => 'database-uuids', 'database' => 'mysql', 'table' => 'failed_jobs'],
    ],
    'cache' => ['default' => 'file', 'prefix' => '', 'stores' => ['file' => ['driver' => 'file', 'path' => "$dir/cache"]]],
    'logging' => ['default' => 'null', 'channels' => ['null' => ['driver' => 'monolog', 'handler' => Monolog\Handler\NullHandler::class]]],
]));
$app->instance('env', 'production');
Illuminate\Support\Facades\Facade::setFacadeApplication($app);
$app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, function () {
    return new class implements Illuminate\Contracts\Debug\ExceptionHandler {
        public function report(Throwable $e) { fwrite(STDERR, get_class($e) . ': ' . $e->getMessage() . "\n"); }
        public function shouldReport(Throwable $e) { return true; }
        public function render($request, Throwable $e) { throw $e; }
        public function renderForConsole($output, Throwable $e) { fwrite(STDERR, $e . "\n"); }
    };
});
foreach ([
    Illuminate\Events\EventServiceProvider::class, Illuminate\Database\DatabaseServiceProvider::class, Illuminate\Filesystem\FilesystemServiceProvider::class,
    Illuminate\Bus\BusServiceProvider::class, Illuminate\Cache\CacheServiceProvider::class, Illuminate\Encryption\EncryptionServiceProvider::class,
    Illuminate\Queue\QueueServiceProvider::class,
] as $provider) {
    $app->register($provider);
}
foreach (getenv('WITHOUT_PACKAGE') ? [] : json_decode(file_get_contents($sdk . 'composer.json'), true)['extra']['laravel']['providers'] as $provider) {
    if ($provider === CmsJobs\Laravel\Worker\WorkerServiceProvider::class) { // the other one needs nothing of this test
        $app->register($provider);
    }
}
$app->alias('cache', Illuminate\Contracts\Cache\Factory::class);
$app->alias('cache.store', Illuminate\Contracts\Cache\Repository::class);
$app->alias('db', Illuminate\Database\ConnectionResolverInterface::class);
if (interface_exists(Illuminate\Contracts\Foundation\MaintenanceMode::class)) { // Laravel 9 and newer
    $app->singleton(Illuminate\Contracts\Foundation\MaintenanceMode::class, Illuminate\Foundation\FileBasedMaintenanceMode::class);
}
$app->boot();

foreach (getenv('PROBE_QUIET') ? [] : ['JobProcessing', 'JobProcessed', 'JobExceptionOccurred', 'JobFailed'] as $name) {
    $app['events']->listen('Illuminate\\Queue\\Events\\' . $name, function ($event) use ($name) {
        App\Jobs\Probe::say(App\Jobs\Probe::of($event->job), $name . (isset($event->exception) ? ' ' . get_class($event->exception) : ''));
    });
}

if (getenv('PROBE_SOCKET')) { // the package's knock
    (new CmsJobs\Laravel\Listeners\NotifyOfJobs(new CmsJobs\Laravel\Socket(getenv('PROBE_SOCKET')), $app['config'], $app['db']))->subscribe($app['events']);
}

[$command, $arguments] = [$argv[1] ?? '', array_slice($argv, 2)];
if ($command === 'push') { // push QUEUE PROBE JSON …
    foreach (array_chunk(array_slice($arguments, 1), 2) as [$what, $set]) {
        App\Jobs\Probe::push($app, $arguments[0], $what, json_decode($set, true));
    }
    exit(0);
}
if ($command === 'push-many') { // push-many QUEUE PROBE FROM N
    for ($i = 0; $i < (int) $arguments[3]; $i++) {
        $app['queue']->push(new App\Jobs\Probe($arguments[1], ['n' => (int) $arguments[2] + $i]), '', $arguments[0]);
    }
    exit(0);
}
if ($command === 'push-bulk') { // push-bulk QUEUE PROBE N
    foreach (array_chunk(range(1, (int) $arguments[2]), 1000) as $numbers) {
        $app['queue']->bulk(array_map(function ($n) use ($arguments) {
            return new App\Jobs\Probe($arguments[1], ['n' => $n]);
        }, $numbers), '', $arguments[0]);
    }
    exit(0);
}
if ($command === 'naps') { // naps N: how long N sleeps of 5 ms take, in seconds
    $begun = hrtime(true);
    for ($i = 0; $i < (int) $arguments[0]; $i++) {
        usleep(5000);
    }
    printf("%.6f\n", (hrtime(true) - $begun) / 1e9);
    exit(0);
}
if ($command === 'push-clock') { // push-clock QUEUE N: one job each 100 to 160 ms
    for ($i = 0; $i < (int) $arguments[1]; $i++) {
        $app['queue']->push(new App\Jobs\Probe('clock', ['made' => microtime(true)]), '', $arguments[0]);
        usleep(random_int(100000, 160000));
    }
    exit(0);
}
if ($command === 'restart') {
    $app['cache.store']->forever('illuminate:queue:restart', time());
    exit(0);
}

$console = new Illuminate\Console\Application($app, $app['events'], 'test');
$console->setAutoExit(false);
$console->add(new Illuminate\Queue\Console\WorkCommand($app['queue.worker'], $app['cache.store']));
exit($console->run(new Symfony\Component\Console\Input\ArgvInput($argv), new Symfony\Component\Console\Output\ConsoleOutput()));
