<?php

use CmsJobs\Laravel\Queue;

if (! function_exists('cmsjobs_enqueue')) {
    /** Enqueues a job for the service and returns its UUID. */
    function cmsjobs_enqueue(string $type, array $data = [], array $options = []): string
    {
        return app(Queue::class)->enqueue($type, $data, $options);
    }
}
