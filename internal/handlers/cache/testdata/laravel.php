<?php
// Laravel's own cache, in an application's folder: php laravel.php DIR OP, with
// the application's .env as JSON in APP_ENV_JSON. OP: version, put, tag, clear,
// flush-tag. The framework is the one on include_path.

error_reporting(E_ALL & ~E_DEPRECATED & ~E_NOTICE & ~E_WARNING);
[, $dir, $op] = $argv;
foreach (json_decode(getenv('APP_ENV_JSON'), true) as $name => $value) {
    $_ENV[$name] = $_SERVER[$name] = $value;
    putenv("$name=$value");
}
$root = null;
foreach (explode(PATH_SEPARATOR, get_include_path()) as $folder) {
    if (is_dir("$folder/Illuminate/Cache")) {
        $root = $folder;
        break;
    }
}
foreach (["$root/Illuminate/autoload.php", "$root/Illuminate/Foundation/autoload.php"] as $file) {
    if (is_file($file)) {
        require_once $file;
    }
}
if ($op === 'version') {
    echo Illuminate\Foundation\Application::VERSION;
    exit;
}
$app = new Illuminate\Foundation\Application($dir);
$app->instance('config', new Illuminate\Config\Repository([
    'cache' => require "$dir/config/cache.php",
    'database' => require "$dir/config/database.php",
]));
Illuminate\Support\Facades\Facade::setFacadeApplication($app);
foreach ([Illuminate\Events\EventServiceProvider::class, Illuminate\Filesystem\FilesystemServiceProvider::class,
    Illuminate\Database\DatabaseServiceProvider::class, Illuminate\Redis\RedisServiceProvider::class, Illuminate\Cache\CacheServiceProvider::class] as $provider) {
    (new $provider($app))->register();
}
$cache = $app['cache'];
switch ($op) {
case 'put':
    for ($i = 0; $i < 40; $i++) {
        $cache->put("k$i", ['v' => $i], 3600);
    }
    $cache->forever('for ever', 1);
    break;
case 'tag':
    for ($i = 0; $i < 20; $i++) {
        $cache->tags(['posts', 'people'])->put("t$i", "v$i", 3600);
        $cache->tags(['posts'])->forever("f$i", "v$i");
    }
    $cache->tags(['other'])->put('o', 'v', 3600);
    $cache->put('plain', 'v', 3600);
    break;
case 'tagged':
    $left = 0;
    for ($i = 0; $i < 20; $i++) {
        $left += ($cache->tags(['posts', 'people'])->get("t$i") !== null) + ($cache->tags(['posts'])->get("f$i") !== null);
    }
    echo json_encode([$left, $cache->tags(['other'])->get('o'), $cache->get('plain')]);
    break;
case 'clear': // what "artisan cache:clear" does with the store
    $cache->flush();
    break;
case 'flush-tag':
    $cache->tags(['posts'])->flush();
    break;
}
