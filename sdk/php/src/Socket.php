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
    /** The longest datagram that the service reads, and that other systems than Linux send. */
    private const LONGEST = PHP_OS_FAMILY === 'Linux' ? 8000 : 2000;

    private string $path;
    /** @var resource|\Socket|null */
    private $socket = null;

    public function __construct(string $path)
    {
        $this->path = $path;
    }

    /**
     * The message that a job was enqueued, with the row that was inserted: the service
     * claims it without reading it first. It trusts none: the table must have the row so.
     *
     * @param array<string, mixed> $row
     */
    public static function jobs(array $row): string
    {
        $fields = array_intersect_key($row, ['id' => 0, 'payload' => 0, 'available_at' => 0, 'created_at' => 0]);
        $message = 'jobs ' . $row['queue'] . "\n" . json_encode($fields, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);

        return strlen($message) <= self::LONGEST ? $message : 'jobs';
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
     * Notifies the service: of new jobs ("jobs", or what jobs() makes of one), or of changed
     * content ("content", its table and id). It never waits and never fails.
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
