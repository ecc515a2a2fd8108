<?php

namespace CmsJobs\Laravel\Listeners;

use CmsJobs\Laravel\Socket;
use Illuminate\Contracts\Config\Repository;
use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Database\ConnectionResolverInterface;

/**
 * Notifies the service of the jobs that Laravel itself puts into the jobs table,
 * when they are committed.
 */
class NotifyOfJobs
{
    private Socket $socket;
    private Repository $config;
    private ConnectionResolverInterface $databases;

    public function __construct(Socket $socket, Repository $config, ConnectionResolverInterface $databases)
    {
        $this->socket = $socket;
        $this->config = $config;
        $this->databases = $databases;
    }

    public function subscribe(Dispatcher $events): void
    {
        $events->listen('Illuminate\Queue\Events\JobQueued', function ($event) {
            $queue = $this->config->get("queue.connections.{$event->connectionName}", []);
            if (($queue['driver'] ?? '') === 'database') { // those of Redis and others are none of the table's
                $this->socket->notifyAfterCommit($this->databases->connection($queue['connection'] ?? null));
            }
        });
    }
}
