<?php

use CmsJobs\Laravel\Queue;
use CmsJobs\Laravel\Worker\Desk;

if (! function_exists('cmsjobs_enqueue')) {
    /** Enqueues a job for the service and returns its UUID. */
    function cmsjobs_enqueue(string $type, array $data = [], array $options = []): string
    {
        return app(Queue::class)->enqueue($type, $data, $options);
    }
}

if (! function_exists('cmsjobs_progress')) {
    /** Says how far the running job is, where cmsjobs runs it; under queue:work it does nothing. A total of 0 is not known. */
    function cmsjobs_progress(int $done, int $total = 0, string $note = ''): void
    {
        if (app()->bound(Desk::class)) {
            app(Desk::class)->progress($done, $total, $note);
        }
    }
}
