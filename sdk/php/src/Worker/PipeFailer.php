<?php

namespace CmsJobs\Laravel\Worker;

use Illuminate\Queue\Failed\FailedJobProviderInterface;

/**
 * Stands before the application's own provider of failed jobs: what the job in
 * hand fails with goes to cmsjobs, which writes failed_jobs and deletes the row in
 * one transaction. Everything else is the application's own.
 */
class PipeFailer implements FailedJobProviderInterface
{
    private FailedJobProviderInterface $own;
    private Desk $desk;

    public function __construct(FailedJobProviderInterface $own, Desk $desk)
    {
        $this->own = $own;
        $this->desk = $desk;
    }

    public function log($connection, $queue, $payload, $exception)
    {
        $job = $this->desk->job();
        if ($job === null || $job->getRawBody() !== $payload) {
            return $this->own->log($connection, $queue, $payload, $exception);
        }
        $job->failedWith((string) $exception);

        return $job->uuid();
    }

    public function all()
    {
        return $this->own->all();
    }

    public function find($id)
    {
        return $this->own->find($id);
    }

    public function forget($id)
    {
        return $this->own->forget($id);
    }

    public function flush($hours = null)
    {
        return $this->own->flush($hours);
    }

    public function ids($queue = null)
    {
        return $this->own->ids($queue);
    }

    public function __call($method, $arguments)
    {
        return $this->own->$method(...$arguments);
    }
}
