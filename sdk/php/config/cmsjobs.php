<?php

return [
    // The database connection and table of the queue; null is Laravel's default.
    'connection' => env('CMSJOBS_CONNECTION'),
    'table' => env('CMSJOBS_TABLE', 'jobs'),
    // The queue that the service listens to. PHP workers must not listen to it.
    'queue' => env('CMSJOBS_QUEUE', 'cmsjobs'),
    // The socket of the service on this host, which is notified of each job after its
    // commit, so that it starts at once; false: it finds the job by itself.
    'socket' => env('CMSJOBS_SOCKET', storage_path('framework/cmsjobs.sock')),
    // What in the CMS enqueues jobs by itself: content a sitemap, media thumbnails,
    // settings and theme the clearing of caches.
    'listen' => [
        'content' => env('CMSJOBS_LISTEN_CONTENT', true),
        'media' => env('CMSJOBS_LISTEN_MEDIA', true),
        'settings' => env('CMSJOBS_LISTEN_SETTINGS', true),
        'theme' => env('CMSJOBS_LISTEN_THEME', true),
    ],
    // Requests that save settings or change the theme, by the names of their routes.
    'routes' => [
        'settings' => ['settings.*', '*.settings', '*.settings.*', 'theme.options', 'theme.options.*'],
        'theme' => ['theme.active', 'theme.remove', 'theme.custom-*'],
    ],
    // Seconds by which a sitemap waits after a change; changes meanwhile make no other.
    'sitemap_delay' => 30,
];
