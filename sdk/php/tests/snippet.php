<?php

// Runs PHP code from standard input, as a controller of the CMS would.

require __DIR__ . '/application.php';
eval('use CmsJobs\Laravel\Facades\CmsJobs; ' . stream_get_contents(STDIN));
