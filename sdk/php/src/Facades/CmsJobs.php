<?php

namespace CmsJobs\Laravel\Facades;

use CmsJobs\Laravel\Queue;
use Illuminate\Support\Facades\Facade;

/**
 * @method static string enqueue(string $type, array $data = [], array $options = [])
 * @method static string|null enqueueOnce(string $type, array $data = [], array $options = [])
 * @method static int pending()
 * @method static int failed(string $table = 'failed_jobs')
 */
class CmsJobs extends Facade
{
    protected static function getFacadeAccessor(): string
    {
        return Queue::class;
    }
}
