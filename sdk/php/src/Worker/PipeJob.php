<?php

namespace CmsJobs\Laravel\Worker;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job;
use Illuminate\Queue\ManuallyFailedException;
use Throwable;

/** A row of the jobs table that cmsjobs holds the lease of. cmsjobs receives its outcome and writes it. */
class PipeJob extends Job implements JobContract
{
    private array $row;
    private int $delay = 0;
    private ?string $exception = null;
    private ?string $thrown = null;

    public function __construct(Container $container, array $row, string $connection, string $queue)
    {
        $this->container = $container;
        $this->row = $row;
        $this->connectionName = $connection;
        $this->queue = $queue;
    }

    public function getJobId()
    {
        return $this->row['id'];
    }

    public function getRawBody()
    {
        return $this->row['payload'];
    }

    public function attempts()
    {
        return (int) $this->row['attempts'];
    }

    /** Runs the job, or fails it if it killed too many processes: its failed(), batch and unique lock then know. */
    public function fire()
    {
        if (isset($this->row['give_up'])) {
            $this->fail(new ProcessDied($this->row['give_up']));
        } else {
            parent::fire();
        }
    }

    public function release($delay = 0)
    {
        parent::release($delay);
        $this->delay = max(0, $this->secondsUntil($delay));
    }

    /** Laravel deletes first and writes failed_jobs last: what throws between (a failed() hook, a listener) loses the job there, not here. */
    public function fail($e = null)
    {
        $was = $this->isDeleted();
        try {
            parent::fail($e);
        } finally {
            if (! $was && $this->exception === null) {
                $this->failedWith((string) ($e ?: new ManuallyFailedException()));
            }
        }
    }

    /** The job is for failed_jobs, with this text. */
    public function failedWith(string $exception): void
    {
        $this->exception = self::text($exception);
        if (isset($this->row['crash'])) {
            $this->exception .= "\n\nThe attempt before ended so: {$this->row['crash']}";
        }
    }

    /** The attempt threw; Laravel releases or fails the job then. */
    public function threw(Throwable $e): void
    {
        $this->thrown = self::text((string) $e);
    }

    /** What became of the job; "nothing" where it neither deleted, released nor failed. */
    public function outcome(): array
    {
        $outcome = ['id' => $this->row['id']];
        // Not hasFailed(): a job that deletes itself and then fails leaves no row in failed_jobs in Laravel either.
        if ($this->exception !== null) {
            return $outcome + ['as' => 'fail', 'exception' => $this->exception];
        }
        if ($this->isReleased()) {
            return $outcome + ['as' => 'release', 'delay' => $this->delay, 'exception' => (string) $this->thrown];
        }

        return $outcome + ['as' => $this->isDeleted() ? 'delete' : 'nothing'];
    }

    private static function text(string $text): string
    {
        return substr($text, 0, Pipe::LONGEST_TEXT - 4096);
    }
}
