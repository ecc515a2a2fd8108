<?php

// Runs PHP code from standard input with Debian's Laravel, as the terminate of
// a middleware of the CMS would: $request is what a visitor asked for.

require '/usr/share/php/Illuminate/autoload.php';
require '/usr/share/php/GuzzleHttp/autoload.php';

$app = new Illuminate\Foundation\Application(sys_get_temp_dir());
$app->instance('config', new Illuminate\Config\Repository(['services' => ['cmsjobs' => ['key' => getenv('SERVER_KEY')]]]));
Illuminate\Support\Facades\Facade::setFacadeApplication($app);

$request = Illuminate\Http\Request::create('http://cms.example/news/a?utm_source=letter', 'GET', [], [], [], [
    'REMOTE_ADDR' => '203.0.113.7', 'HTTP_REFERER' => 'https://www.google.com/',
    'HTTP_USER_AGENT' => 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
]);
eval('use Illuminate\Support\Facades\Http; ' . stream_get_contents(STDIN));
