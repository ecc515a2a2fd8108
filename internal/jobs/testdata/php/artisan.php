<?php
// A Laravel of Debian's packages that is just large enough for its own queue
// commands: php artisan.php queue:work|queue:failed|queue:retry|push ...
// The database comes by the environment: DB_PORT, DB_DATABASE, RETRY_AFTER.

error_reporting(E_ALL & ~E_DEPRECATED & ~E_NOTICE & ~E_WARNING);
foreach (['/usr/share/php/Illuminate/autoload.php', '/usr/share/php/Illuminate/Foundation/autoload.php'] as $file) {
    if (is_file($file)) {
        require_once $file;
    }
}

// A job of PHP's own: it writes down that it ran.
class PhpJob implements Illuminate\Contracts\Queue\ShouldQueue
{
    use Illuminate\Bus\Queueable, Illuminate\Queue\InteractsWithQueue;

    public $key;

    public function __construct($key)
    {
        $this->key = $key;
    }

    public function handle()
    {
        Illuminate\Support\Facades\DB::table('php_effects')->insert(['k' => $this->key, 'pid' => getmypid()]);
        usleep(2000);
    }
}

// A job that does nothing, to measure the queue itself.
class NoopJob implements Illuminate\Contracts\Queue\ShouldQueue
{
    use Illuminate\Bus\Queueable, Illuminate\Queue\InteractsWithQueue;

    public function handle()
    {
    }
}

// A job that says on the output how long after its making it started, in ms.
class ClockJob implements Illuminate\Contracts\Queue\ShouldQueue
{
    use Illuminate\Bus\Queueable, Illuminate\Queue\InteractsWithQueue;

    public $made;

    public function __construct()
    {
        $this->made = microtime(true);
    }

    public function handle()
    {
        file_put_contents('php://stderr', sprintf("picked up after %.3f\n", 1000 * (microtime(true) - $this->made)));
    }
}

$app = new Illuminate\Foundation\Application(sys_get_temp_dir() . '/cmsjobs-artisan-' . getmypid());
$app->instance('config', new Illuminate\Config\Repository([
    'app' => ['key' => 'base64:' . base64_encode(str_repeat('k', 32)), 'cipher' => 'AES-256-CBC', 'env' => 'production'],
    'database' => ['default' => 'mysql', 'connections' => ['mysql' => [
        'driver' => 'mysql', 'host' => '127.0.0.1', 'port' => getenv('DB_PORT'), 'database' => getenv('DB_DATABASE'),
        'username' => 'root', 'password' => '', 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '', 'strict' => true,
    ]]],
    'queue' => [
        'default' => 'database',
        'connections' => ['database' => ['driver' => 'database', 'table' => 'jobs', 'queue' => 'default', 'retry_after' => (int) (getenv('RETRY_AFTER') ?: 90)]],
        'failed' => ['driver' => 'database-uuids', 'database' => 'mysql', 'table' => 'failed_jobs'],
    ],
    'cache' => ['default' => 'array', 'stores' => ['array' => ['driver' => 'array']]],
    'logging' => ['default' => 'null', 'channels' => ['null' => ['driver' => 'monolog', 'handler' => Monolog\Handler\NullHandler::class]]],
]));
$app->instance('env', 'production');
Illuminate\Support\Facades\Facade::setFacadeApplication($app);
foreach ([
    Illuminate\Events\EventServiceProvider::class, Illuminate\Database\DatabaseServiceProvider::class, Illuminate\Bus\BusServiceProvider::class,
    Illuminate\Cache\CacheServiceProvider::class, Illuminate\Encryption\EncryptionServiceProvider::class, Illuminate\Queue\QueueServiceProvider::class,
] as $provider) {
    $app->register($provider);
}
$app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, function () {
    return new class implements Illuminate\Contracts\Debug\ExceptionHandler {
        public function report(Throwable $e) { fwrite(STDERR, get_class($e) . ': ' . $e->getMessage() . "\n"); }
        public function shouldReport(Throwable $e) { return true; }
        public function render($request, Throwable $e) { throw $e; }
        public function renderForConsole($output, Throwable $e) { fwrite(STDERR, $e . "\n"); }
    };
});
$app->boot();

if (($argv[1] ?? '') === 'push') { // push N jobs of PHP's own, or one of ours: push-type TYPE JSON
    for ($i = 0; $i < (int) $argv[2]; $i++) {
        $app['queue']->push(new PhpJob($i));
    }
    exit(0);
}
if (($argv[1] ?? '') === 'push-noop') { // push-noop N one|bulk: one job a call, or by the thousand; says the seconds
    $begun = microtime(true);
    for ($left = (int) $argv[2]; $left > 0; $left -= 1000) {
        $jobs = array_fill(0, min($left, 1000), new NoopJob());
        if ($argv[3] === 'bulk') {
            $app['queue']->bulk($jobs);
        } else {
            array_map([$app['queue'], 'push'], $jobs);
        }
    }
    printf("%.6f\n", microtime(true) - $begun);
    exit(0);
}
if (($argv[1] ?? '') === 'push-clock') { // push-clock N MS: one job each MS milliseconds
    for ($i = 0; $i < (int) $argv[2]; $i++) {
        $app['queue']->push(new ClockJob());
        usleep(1000 * (int) $argv[3]);
    }
    exit(0);
}
if (($argv[1] ?? '') === 'run') { // run FILE: PHP as an owner writes it into the application
    foreach (['DB' => Illuminate\Support\Facades\DB::class, 'Str' => Illuminate\Support\Str::class] as $name => $class) {
        class_alias($class, $name);
    }
    require $argv[2];
    exit(0);
}
if (($argv[1] ?? '') === 'push-type') {
    $app['queue']->push($argv[2], json_decode($argv[3], true), $argv[4] ?? 'default');
    exit(0);
}

$console = new Illuminate\Console\Application($app, $app['events'], 'test');
$console->setAutoExit(false);
foreach ([
    new Illuminate\Queue\Console\WorkCommand($app['queue.worker'], $app['cache.store']),
    new Illuminate\Queue\Console\ListFailedCommand(), new Illuminate\Queue\Console\RetryCommand(),
    new Illuminate\Queue\Console\ForgetFailedCommand(), new Illuminate\Queue\Console\FlushFailedCommand(),
] as $command) {
    $console->add($command);
}
exit($console->run(new Symfony\Component\Console\Input\ArgvInput($argv), new Symfony\Component\Console\Output\ConsoleOutput()));
