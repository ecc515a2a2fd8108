<?php

// Runs the package in a Laravel application of Debian's packages on a real
// database: DB_PORT and DB_DATABASE name it. It prints what it enqueued as
// JSON; a Go test beside it reads the rows as the service does.

namespace Botble\Base\Events {
    class UpdatedContentEvent { public $data; public function __construct($data) { $this->data = $data; } }
    class DeletedContentEvent { public $data; public function __construct($data) { $this->data = $data; } }
}
namespace Botble\Media\Events {
    class MediaFileUploaded { public $file; public function __construct($file) { $this->file = $file; } }
}
namespace Botble\Theme\Events {
    class ThemeActivatedEvent {}
}

namespace {
    require '/usr/share/php/Illuminate/autoload.php';
    foreach (['Queue', 'Facades/CmsJobs', 'Listeners/EnqueueForCms', 'Console/StatusCommand', 'CmsJobsServiceProvider', 'helpers'] as $file) {
        require __DIR__ . "/../src/$file.php";
    }

    $base = sys_get_temp_dir() . '/cmsjobs-php-' . getmypid();
    mkdir($base);
    register_shutdown_function(fn () => @rmdir($base));
    $app = new Illuminate\Foundation\Application($base);
    $app->instance('config', new Illuminate\Config\Repository(['database' => ['default' => 'mysql', 'connections' => ['mysql' => [
        'driver' => 'mysql', 'host' => '127.0.0.1', 'port' => getenv('DB_PORT'), 'database' => getenv('DB_DATABASE'), 'username' => 'root', 'password' => '', 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci',
    ]]]]));
    Illuminate\Support\Facades\Facade::setFacadeApplication($app);
    foreach ([Illuminate\Database\DatabaseServiceProvider::class, CmsJobs\Laravel\CmsJobsServiceProvider::class] as $provider) {
        $app->register($provider);
    }
    $app->boot();

    $made = [];
    $made['facade'] = CmsJobs\Laravel\Facades\CmsJobs::enqueue('mail.send', ['to' => 'ann@example.org', 'subject' => 'Grüße 🎉'], ['maxTries' => 5, 'metadata' => ['userId' => 7]]);
    $made['helper'] = cmsjobs_enqueue('cache.clear', [], ['delay' => 3600]);
    try {
        $app['db']->transaction(function () {
            cmsjobs_enqueue('cache.clear', ['tags' => ['lost']]);
            throw new RuntimeException('rolled back');
        });
    } catch (RuntimeException $e) {
    }
    $app['events']->dispatch(new Botble\Base\Events\UpdatedContentEvent((object) ['status' => 'published']));
    $app['events']->dispatch(new Botble\Base\Events\UpdatedContentEvent((object) ['status' => 'draft']));
    $app['events']->dispatch(new Botble\Base\Events\DeletedContentEvent((object) ['status' => 'draft']));
    $app['events']->dispatch(new Botble\Media\Events\MediaFileUploaded((object) ['id' => 3, 'url' => 'news/a.jpg', 'mime_type' => 'image/jpeg']));
    $app['events']->dispatch(new Botble\Media\Events\MediaFileUploaded((object) ['id' => 4, 'url' => 'news/a.pdf', 'mime_type' => 'application/pdf']));
    $app['events']->dispatch(new Botble\Theme\Events\ThemeActivatedEvent());
    foreach (['', str_repeat('x', 192)] as $kind) {
        try {
            cmsjobs_enqueue($kind);
            exit("the kind '$kind' was taken\n");
        } catch (InvalidArgumentException $e) {
        }
    }
    $command = new CmsJobs\Laravel\Console\StatusCommand();
    $command->setLaravel($app);
    $output = new Symfony\Component\Console\Output\BufferedOutput();
    $made['exit'] = $command->run(new Symfony\Component\Console\Input\ArrayInput([]), $output);
    $made['status'] = $output->fetch();
    echo json_encode($made, JSON_THROW_ON_ERROR), "\n";
}
