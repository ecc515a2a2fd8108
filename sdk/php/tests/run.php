<?php

// Uses everything of the package in a Laravel application and prints what it
// enqueued as JSON; a Go test beside it reads the rows as the service does.

// The CMS's events, as its versions 6 and 7 declare them.
namespace Botble\Base\Events {
    class UpdatedContentEvent { public $data; public function __construct($data) { $this->data = $data; } }
    class DeletedContentEvent { public $data; public function __construct($data) { $this->data = $data; } }
}
namespace Botble\Media\Events {
    class MediaFileUploaded { public $file; public function __construct($file) { $this->file = $file; } }
}
namespace Botble\Slug\Events {
    class UpdatedSlugEvent { public $data; public function __construct($data) { $this->data = $data; } }
}

namespace {
    $app = require __DIR__ . '/application.php';

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
    $happens = fn (object $event) => $app['events']->dispatch($event);
    $happens(new Botble\Base\Events\UpdatedContentEvent((object) ['status' => 'draft']));
    $happens(new Botble\Base\Events\UpdatedContentEvent((object) ['username' => 'an administrator']));
    $made['before'] = CmsJobs::pending(); // what no visitor sees makes no sitemap
    $happens(new Botble\Base\Events\UpdatedContentEvent((object) ['status' => 'published']));
    $happens(new Botble\Base\Events\DeletedContentEvent((object) ['status' => 'draft'])); // one sitemap for both
    $happens(new Botble\Slug\Events\UpdatedSlugEvent((object) ['status' => 'published']));
    $happens(new Botble\Media\Events\MediaFileUploaded((object) ['id' => 3, 'url' => 'news/a.jpg', 'mime_type' => 'image/jpeg']));
    $happens(new Botble\Media\Events\MediaFileUploaded((object) ['id' => 4, 'url' => 'news/a.pdf', 'mime_type' => 'application/pdf']));

    // An administrator's requests, as the kernel tells of them when it is done.
    foreach ([
        ['PUT', 'settings.general.update', 302], // clears the settings' cache
        ['GET', 'settings.general.update', 200],
        ['PUT', 'settings.general.update', 422], // refused: nothing was saved
        ['POST', 'public.comment', 200],
        ['POST', 'theme.active', 200], // clears everything
    ] as [$method, $name, $status]) {
        $request = Illuminate\Http\Request::create('/admin', $method);
        $request->setRouteResolver(fn () => (new Illuminate\Routing\Route($method, '/admin', []))->name($name));
        $happens(new Illuminate\Foundation\Http\Events\RequestHandled($request, new Illuminate\Http\Response('', $status)));
    }
    foreach (['cms:theme:activate' => 0, 'cms:theme:remove' => 1, 'cache:clear' => 0] as $name => $exit) {
        $happens(new Illuminate\Console\Events\CommandFinished($name, new Symfony\Component\Console\Input\ArrayInput([]), new Symfony\Component\Console\Output\NullOutput(), $exit));
    }
    foreach (['', str_repeat('x', 192)] as $type) {
        try {
            cmsjobs_enqueue($type);
            exit("the type '$type' was accepted\n");
        } catch (InvalidArgumentException $e) {
        }
    }
    foreach (['', 'a b', "mail\n", 'höchste', str_repeat('q', 192)] as $queue) {
        try {
            cmsjobs_enqueue('cache.clear', [], ['queue' => $queue]);
            exit("the queue '$queue' was accepted\n");
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
