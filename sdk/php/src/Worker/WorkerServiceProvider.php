<?php

namespace CmsJobs\Laravel\Worker;

use Illuminate\Queue\Events\JobExceptionOccurred;
use Illuminate\Queue\Events\WorkerStopping;
use Illuminate\Queue\Worker;
use Illuminate\Support\ServiceProvider;

/**
 * Makes "php artisan queue:work CONNECTION --name=cmsjobs" a worker of cmsjobs
 * where cmsjobs has started it (CMSJOBS_PIPE names the connection): Laravel's own
 * command, worker and loop, whose jobs come over a pipe instead of from a SELECT.
 * Anywhere else it does nothing.
 */
class WorkerServiceProvider extends ServiceProvider
{
    public const NAME = 'cmsjobs';

    public function boot(): void
    {
        $connection = (string) getenv('CMSJOBS_PIPE');
        if ($connection === '' || ! $this->app->runningInConsole()) {
            return;
        }
        putenv('CMSJOBS_PIPE'); // not for the programs that jobs start
        unset($_ENV['CMSJOBS_PIPE'], $_SERVER['CMSJOBS_PIPE']);
        $this->serve($connection, new Pipe(fopen('php://fd/3', 'rb'), fopen('php://fd/4', 'wb')));
    }

    private function serve(string $connection, Pipe $pipe): void
    {
        $this->app->instance(Desk::class, $desk = new Desk($this->app, $pipe, $connection));
        $this->app->extend('queue.failer', function ($own) use ($desk) {
            return $desk->failer($own);
        });
        Worker::popUsing(self::NAME, function ($pop, $queue) use ($desk) {
            return $desk->pop((string) $queue);
        });
        $this->app['events']->listen(JobExceptionOccurred::class, function ($event) {
            if ($event->job instanceof PipeJob) {
                $event->job->threw($event->exception);
            }
        });
        $stopped = false;
        $this->app['events']->listen(WorkerStopping::class, function ($event) use ($desk, &$stopped) {
            $stopped = true;
            $desk->leave(['bye' => (int) ($event->status ?? 0)]);
        });
        register_shutdown_function(function () use ($desk, &$stopped) { // exit() in a job, or a fatal error
            if (! $stopped) {
                ini_set('memory_limit', '-1'); // what used it up is still there
                $desk->leave(['died' => self::lastError() ?? 'exit() was called']);
            }
        });
        $desk->hello();
    }

    private static function lastError(): ?string
    {
        $e = error_get_last();
        $fatal = $e && in_array($e['type'], [E_ERROR, E_CORE_ERROR, E_COMPILE_ERROR, E_PARSE, E_RECOVERABLE_ERROR], true);

        return $fatal ? "{$e['message']} in {$e['file']}:{$e['line']}" : null;
    }
}
