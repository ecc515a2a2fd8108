<?php

return [
    // The database connection and table of the queue; null is Laravel's default.
    'connection' => env('CMSJOBS_CONNECTION'),
    'table' => env('CMSJOBS_TABLE', 'jobs'),
    // The queue that the service listens to. PHP workers must not listen to it.
    'queue' => env('CMSJOBS_QUEUE', 'cmsjobs'),
    // Which events of the CMS enqueue jobs by themselves.
    'listen' => [
        'content' => env('CMSJOBS_LISTEN_CONTENT', true),
        'media' => env('CMSJOBS_LISTEN_MEDIA', true),
        'settings' => env('CMSJOBS_LISTEN_SETTINGS', true),
        'theme' => env('CMSJOBS_LISTEN_THEME', true),
    ],
    // Seconds by which a sitemap waits after a change, so that many make one.
    'sitemap_delay' => 30,
];
