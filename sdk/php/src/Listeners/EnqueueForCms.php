<?php

namespace CmsJobs\Laravel\Listeners;

use CmsJobs\Laravel\Queue;
use Illuminate\Contracts\Events\Dispatcher;

/**
 * Turns the CMS's own events into jobs. Events are named by their classes, so
 * that nothing of the CMS must be installed: those that a version does not
 * fire are never heard.
 */
class EnqueueForCms
{
    private const EVENTS = [
        'content' => ['Botble\Base\Events\CreatedContentEvent', 'Botble\Base\Events\UpdatedContentEvent', 'Botble\Base\Events\DeletedContentEvent'],
        'media' => ['Botble\Media\Events\MediaFileUploaded'],
        'settings' => ['Botble\Setting\Events\SettingUpdatedEvent', 'Botble\Setting\Events\SettingsUpdatedEvent'],
        'theme' => ['Botble\Theme\Events\ThemeActivatedEvent', 'Botble\Theme\Events\ThemeActivated'],
    ];

    private Queue $queue;
    private array $listen;
    private int $sitemapDelay;

    public function __construct(Queue $queue, array $listen, int $sitemapDelay)
    {
        $this->queue = $queue;
        $this->listen = $listen;
        $this->sitemapDelay = $sitemapDelay;
    }

    public function subscribe(Dispatcher $events): void
    {
        foreach (self::EVENTS as $area => $names) {
            if ($this->listen[$area] ?? false) {
                $events->listen($names, fn (object $event) => $this->$area($event));
            }
        }
    }

    /** A published page, post or category, or one that was taken away, changes the sitemap. */
    private function content(object $event): void
    {
        $model = $event->data ?? null;
        $status = is_object($model) ? (string) ($model->status ?? 'published') : 'published';
        $gone = substr(get_class($event), -strlen('DeletedContentEvent')) === 'DeletedContentEvent';
        $hidden = is_object($model) && method_exists($model, 'wasChanged') && $model->wasChanged('status');
        if ($status === 'published' || $gone || $hidden) {
            $this->queue->enqueue('sitemap.generate', ['force' => false], ['delay' => $this->sitemapDelay]);
        }
    }

    private function media(object $event): void
    {
        $file = $event->file ?? $event->mediaFile ?? null;
        if (is_object($file) && strncmp((string) $file->mime_type, 'image/', 6) === 0) {
            $this->queue->enqueue('media.processImage', ['mediaFileId' => $file->id, 'filePath' => (string) $file->url, 'mimeType' => (string) $file->mime_type]);
        }
    }

    private function settings(object $event): void
    {
        $this->queue->enqueue('cache.clear', ['tags' => ['settings'], 'clearAll' => false]);
    }

    private function theme(object $event): void
    {
        $this->queue->enqueue('cache.clear', ['tags' => [], 'clearAll' => true]);
    }
}
