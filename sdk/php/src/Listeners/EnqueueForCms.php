<?php

namespace CmsJobs\Laravel\Listeners;

use CmsJobs\Laravel\Queue;
use Illuminate\Console\Events\CommandFinished;
use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Foundation\Http\Events\RequestHandled;
use Illuminate\Support\Str;

/**
 * Turns what happens in the CMS into jobs. Content and media have events of
 * the CMS, named here by their classes, so that nothing of the CMS must be
 * installed: those that a version does not fire are never heard. Saving
 * settings and activating a theme have none; they are known by the request or
 * the command that does it. (Writes to the settings table would not do: a save
 * writes every key, and the CMS's own heartbeat saves each minute.)
 */
class EnqueueForCms
{
    private const CONTENT = [
        'Botble\Base\Events\CreatedContentEvent', 'Botble\Base\Events\UpdatedContentEvent', 'Botble\Base\Events\DeletedContentEvent',
        'Botble\Slug\Events\UpdatedSlugEvent',
    ];
    private const MEDIA = ['Botble\Media\Events\MediaFileUploaded'];
    private const THEME_COMMANDS = ['cms:theme:activate', 'cms:theme:remove'];

    private Queue $queue;
    /** @var array{content?: bool, media?: bool, settings?: bool, theme?: bool} */
    private array $listen;
    /** @var array{settings: string[], theme: string[]} names of routes, * stands for anything */
    private array $routes;
    private int $sitemapDelay;

    public function __construct(Queue $queue, array $listen, array $routes, int $sitemapDelay)
    {
        $this->queue = $queue;
        $this->listen = $listen;
        $this->routes = $routes;
        $this->sitemapDelay = $sitemapDelay;
    }

    public function subscribe(Dispatcher $events): void
    {
        if ($this->wants('content')) {
            $events->listen(self::CONTENT, fn (object $event) => $this->content($event));
        }
        if ($this->wants('media')) {
            $events->listen(self::MEDIA, fn (object $event) => $this->media($event));
        }
        if ($this->wants('settings') || $this->wants('theme')) {
            $events->listen(RequestHandled::class, fn (RequestHandled $event) => $this->request($event));
        }
        if ($this->wants('theme')) {
            $events->listen(CommandFinished::class, fn (CommandFinished $event) => $this->command($event));
        }
    }

    private function wants(string $area): bool
    {
        return (bool) ($this->listen[$area] ?? false);
    }

    /**
     * A published page, post or category, or one that was taken away, changes
     * the sitemap. What has no status (an administrator, a menu) has no page.
     */
    private function content(object $event): void
    {
        $model = $event->data ?? null;
        if (is_object($model) && method_exists($model, 'getTable')) {
            $this->queue->contentChanged((string) $model->getTable(), (string) $model->getKey());
        }
        if (! is_object($model) || ! isset($model->status)) {
            return;
        }
        $gone = Str::endsWith(get_class($event), 'DeletedContentEvent');
        $hidden = method_exists($model, 'wasChanged') && $model->wasChanged('status');
        if ((string) $model->status === 'published' || $gone || $hidden) {
            $this->queue->enqueueOnce('sitemap.generate', ['force' => false], ['delay' => $this->sitemapDelay]);
        }
    }

    private function media(object $event): void
    {
        $file = $event->file ?? null;
        if (is_object($file) && strncmp((string) $file->mime_type, 'image/', 6) === 0) {
            $this->queue->enqueue('media.processImage', ['mediaFileId' => $file->id, 'filePath' => (string) $file->url, 'mimeType' => (string) $file->mime_type]);
        }
    }

    /** A change by an administrator that was not refused. */
    private function request(RequestHandled $event): void
    {
        $route = $event->request->route();
        $name = is_object($route) ? (string) $route->getName() : '';
        if ($name === '' || $event->request->isMethodSafe() || $event->response->getStatusCode() >= 400) {
            return;
        }
        if ($this->wants('theme') && Str::is($this->routes['theme'], $name)) {
            $this->clearEverything();
        } elseif ($this->wants('settings') && Str::is($this->routes['settings'], $name)) {
            $this->queue->enqueue('cache.clear', ['tags' => ['settings'], 'clearAll' => false]);
        }
    }

    private function command(CommandFinished $event): void
    {
        if ($event->exitCode === 0 && in_array($event->command, self::THEME_COMMANDS, true)) {
            $this->clearEverything();
        }
    }

    private function clearEverything(): void
    {
        $this->queue->enqueue('cache.clear', ['tags' => [], 'clearAll' => true]);
    }
}
