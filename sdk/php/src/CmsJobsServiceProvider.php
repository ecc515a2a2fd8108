<?php

namespace CmsJobs\Laravel;

use CmsJobs\Laravel\Console\StatusCommand;
use CmsJobs\Laravel\Listeners\EnqueueForCms;
use CmsJobs\Laravel\Listeners\NotifyOfJobs;
use Illuminate\Support\ServiceProvider;

class CmsJobsServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->mergeConfigFrom(__DIR__ . '/../config/cmsjobs.php', 'cmsjobs');
        $this->app->singleton(Queue::class, function ($app) {
            $config = $app['config']['cmsjobs'];

            return new Queue($app['db']->connection($config['connection']), $config['table'], $config['queue'], $config['socket'] ? $app->make(Socket::class) : null);
        });
        $this->app->singleton(Socket::class, fn ($app) => new Socket($app['config']['cmsjobs']['socket']));
    }

    public function boot(): void
    {
        $config = $this->app['config']['cmsjobs'];
        Tags::register();
        (new EnqueueForCms($this->app->make(Queue::class), $config['listen'], $config['routes'], (int) $config['sitemap_delay']))->subscribe($this->app['events']);
        if ($config['socket']) {
            (new NotifyOfJobs($this->app->make(Socket::class), $this->app['config'], $this->app['db']))->subscribe($this->app['events']);
        }
        if ($this->app->runningInConsole()) {
            $this->commands([StatusCommand::class]);
            $this->publishes([__DIR__ . '/../config/cmsjobs.php' => $this->app->configPath('cmsjobs.php')], 'cmsjobs-config');
        }
    }
}
