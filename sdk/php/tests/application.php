<?php

// A Laravel application of Debian's packages with this package in it, on a
// real database: DB_PORT and DB_DATABASE name it.

require '/usr/share/php/Illuminate/autoload.php';
$package = json_decode(file_get_contents(__DIR__ . '/../composer.json'), true, 512, JSON_THROW_ON_ERROR);

// What Composer does with "autoload".
spl_autoload_register(function (string $class) use ($package) {
    foreach ($package['autoload']['psr-4'] as $namespace => $folder) {
        $file = __DIR__ . "/../$folder" . str_replace('\\', '/', substr($class, strlen($namespace))) . '.php';
        if (strncmp($class, $namespace, strlen($namespace)) === 0 && is_file($file)) {
            require $file;
        }
    }
});
foreach ($package['autoload']['files'] as $file) {
    require __DIR__ . "/../$file";
}

$base = sys_get_temp_dir() . '/cmsjobs-php-' . getmypid();
mkdir($base);
register_shutdown_function(fn () => @rmdir($base));
$app = new Illuminate\Foundation\Application($base);
$app->instance('config', new Illuminate\Config\Repository(['database' => ['default' => 'mysql', 'connections' => ['mysql' => [
    'driver' => 'mysql', 'host' => '127.0.0.1', 'port' => getenv('DB_PORT'), 'database' => getenv('DB_DATABASE'), 'username' => 'root', 'password' => '', 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci',
]]]]));
Illuminate\Support\Facades\Facade::setFacadeApplication($app);
// What Laravel's package discovery does with "extra".
foreach ([Illuminate\Database\DatabaseServiceProvider::class, ...$package['extra']['laravel']['providers']] as $provider) {
    $app->register($provider);
}
Illuminate\Foundation\AliasLoader::getInstance($package['extra']['laravel']['aliases'])->register();
$app->boot();

return $app;
