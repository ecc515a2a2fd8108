<?php

namespace CmsJobs\Laravel;

use Illuminate\Database\ConnectionInterface;
use Throwable;

/**
 * The service's Unix socket on this host. A datagram to it is a hint that jobs
 * wait, or that content changed; where nobody listens it is lost, and the service
 * finds both by itself.
 */
class Socket
{
    private string $path;
    /** @var resource|\Socket|null */
    private $socket = null;

    public function __construct(string $path)
    {
        $this->path = $path;
    }

    /**
     * Notifies the service when the open transaction commits, or at once where there
     * is none: before the commit it could not see the jobs.
     */
    public function notifyAfterCommit(ConnectionInterface $db, string $message = 'jobs'): void
    {
        try {
            $db->afterCommit(fn () => $this->notify($message));
        } catch (Throwable $e) { // a Laravel before 8.17, or a connection of another make, tells of no commits
            $this->notify($message);
        }
    }

    /**
     * Notifies the service: of new jobs, or of changed content ("content", its table and
     * id). It never waits and never fails.
     */
    public function notify(string $message = 'jobs'): void
    {
        if (function_exists('socket_create')) {
            $this->socket = $this->socket ?: (@socket_create(AF_UNIX, SOCK_DGRAM, 0) ?: null);
            if ($this->socket) {
                @socket_sendto($this->socket, $message, strlen($message), MSG_DONTWAIT, $this->path);
            }

            return;
        }
        $stream = @stream_socket_client('udg://' . $this->path, $code, $message, 0);
        if ($stream) {
            @stream_set_blocking($stream, false);
            @fwrite($stream, $message);
            fclose($stream);
        }
    }
}
