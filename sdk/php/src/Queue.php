<?php

namespace CmsJobs\Laravel;

use Illuminate\Database\ConnectionInterface;
use Illuminate\Support\Str;
use InvalidArgumentException;

/**
 * Puts jobs for the service into the CMS's own jobs table, by plain INSERTs on
 * the CMS's connection: inside DB::transaction() a job exists when the
 * transaction commits, and otherwise never did.
 */
class Queue
{
    private const MAX_PAYLOAD = 1048576;

    private ConnectionInterface $db;
    private string $table;
    private string $queue;
    private ?Socket $socket;
    private ?bool $extended = null;

    public function __construct(ConnectionInterface $db, string $table = 'jobs', string $queue = 'cmsjobs', ?Socket $socket = null)
    {
        $this->socket = $socket;
        $this->db = $db;
        $this->table = $table;
        $this->queue = $queue;
    }

    /**
     * Enqueues a job and returns its UUID.
     *
     * @param string $type the job type, e.g. "sitemap.generate"
     * @param array<string, mixed> $data what the handler needs
     * @param array{delay?: int, queue?: string, maxTries?: int, priority?: int, metadata?: array<string, mixed>} $options delay in seconds
     */
    public function enqueue(string $type, array $data = [], array $options = []): string
    {
        $uuid = (string) Str::uuid();
        $payload = $this->payload($uuid, $type, $data, $options);
        $queue = $options['queue'] ?? $this->queue;
        if (! preg_match('~^[\w.:/-]{1,191}$~D', $queue)) {
            throw new InvalidArgumentException('The name of a queue has 1 to 191 letters, digits and signs of . : / _ -, and "' . $queue . '" is none.');
        }
        $due = time() + max(0, (int) ($options['delay'] ?? 0));
        $row = $this->isExtended() ? [
            'queue' => $queue, 'name' => $type, 'payload_json' => $payload, 'status' => 'queued', 'priority' => (int) ($options['priority'] ?? 0),
            'run_at' => gmdate('Y-m-d H:i:s', $due), 'max_attempts' => (int) ($options['maxTries'] ?? 3),
            'created_at' => gmdate('Y-m-d H:i:s'), 'updated_at' => gmdate('Y-m-d H:i:s'),
        ] : [
            'queue' => $queue, 'payload' => $payload, 'attempts' => 0, 'reserved_at' => null, 'available_at' => $due, 'created_at' => time(),
        ];
        $id = $this->db->table($this->table)->insertGetId($row);
        if ($this->socket !== null) {
            $this->socket->notifyAfterCommit($this->db, isset($row['payload']) ? Socket::jobs($row + ['id' => $id]) : 'jobs');
        }

        return $uuid;
    }

    /** Tells the service that content was saved or deleted, when that is committed. */
    public function contentChanged(string $table, string $id): void
    {
        if ($this->socket !== null) {
            $this->socket->notifyAfterCommit($this->db, substr("content $table $id", 0, 60));
        }
    }

    /**
     * Enqueues a job unless one of its type waits already, and returns its UUID
     * or null. Two requests at the same moment may make two: jobs of the service
     * are made to be repeated.
     */
    public function enqueueOnce(string $type, array $data = [], array $options = []): ?string
    {
        $waiting = $this->db->table($this->table)->where('queue', $options['queue'] ?? $this->queue);
        if ($this->isExtended()) {
            $waiting->where('status', 'queued')->where('name', $type);
        } else {
            $waiting->whereNull('reserved_at')->where('payload', 'like', '%"type":"' . addcslashes($type, '%_\\') . '"%');
        }

        return $waiting->exists() ? null : $this->enqueue($type, $data, $options);
    }

    /** How many jobs for the service wait or run. */
    public function pending(): int
    {
        return $this->db->table($this->table)->where('queue', $this->queue)->count();
    }

    /** How many of its jobs failed for good. */
    public function failed(string $table = 'failed_jobs'): int
    {
        return $this->db->table($table)->where('queue', $this->queue)->count();
    }

    /**
     * The payload has the keys of Laravel's own tools, so that queue:failed
     * names the job and queue:retry retries it.
     */
    private function payload(string $uuid, string $type, array $data, array $options): string
    {
        if ($type === '' || strlen($type) > 191) {
            throw new InvalidArgumentException('A job needs a type of at most 191 bytes, for example sitemap.generate.');
        }
        $payload = json_encode([
            'uuid' => $uuid, 'displayName' => $type, 'job' => $type, 'maxTries' => $options['maxTries'] ?? null, 'maxExceptions' => null,
            'failOnTimeout' => false, 'backoff' => null, 'timeout' => null, 'retryUntil' => null,
            'type' => $type, 'data' => (object) $data, 'metadata' => (object) ($options['metadata'] ?? []),
        ], JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
        if (strlen($payload) > self::MAX_PAYLOAD) {
            throw new InvalidArgumentException("The payload of $type has more than " . self::MAX_PAYLOAD . ' bytes: put large data into a file and pass its name.');
        }

        return $payload;
    }

    private function isExtended(): bool
    {
        return $this->extended ??= $this->db->getSchemaBuilder()->hasColumn($this->table, 'payload_json');
    }
}
