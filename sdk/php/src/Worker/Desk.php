<?php

namespace CmsJobs\Laravel\Worker;

use Illuminate\Contracts\Foundation\Application;
use Illuminate\Queue\Failed\FailedJobProviderInterface;
use Illuminate\Queue\Worker;
use RuntimeException;
use Throwable;

/**
 * Has the job in hand, asks cmsjobs for the next one and tells it the outcome.
 * Outcomes that cmsjobs has not confirmed are kept: if it is gone, they are
 * written here, so that no job runs twice.
 */
class Desk
{
    private const VERSION = 2;
    /** How long an answer may take before Laravel's loop looks at its signals, in seconds; an order comes within one. */
    private const PATIENCE = 5;

    private $app;
    private Pipe $pipe;
    private string $connection;
    private ?FailedJobProviderInterface $failer = null;
    private ?PipeJob $job = null;
    private bool $asked = false;
    private bool $gone = false;
    private int $looked = 0;
    private bool $paused = false;
    private float $said = 0;
    /** @var array<int, array{0: array, 1: PipeJob}> */
    private array $unconfirmed = [];

    public function __construct($app, Pipe $pipe, string $connection)
    {
        $this->app = $app;
        $this->pipe = $pipe;
        $this->connection = $connection;
    }

    public function failer(FailedJobProviderInterface $own): PipeFailer
    {
        return new PipeFailer($this->failer = $own, $this);
    }

    public function job(): ?PipeJob
    {
        return $this->job;
    }

    public function hello(): void
    {
        $this->tell(['hello' => self::VERSION]);
    }

    /** The next job of the queue, or null when there is none now. */
    public function pop(string $queue): ?PipeJob
    {
        if (! $this->asked || $this->job !== null) {
            $ended = $this->job !== null;
            $message = $this->outcome();
            $this->asked = ! $this->paused($queue);
            if ($ended && $this->asked && ($order = $this->sentAhead($message)) !== null) {
                $this->pipe->mark();
                $this->tell($message + ['took' => $order['until']]);

                return $this->begin($order);
            }
            $message += $this->asked ? ['more' => true] : [];
            if ($message !== []) {
                $this->tell($message);
            }
            if (! $this->asked) {
                sleep(1); // a signal ends it

                return null;
            }
        }
        while (! $this->gone && ($order = $this->order()) !== null) {
            if (! $this->late($order)) {
                if (isset($order['until'])) { // it was on its way when it was asked for
                    $this->pipe->mark();
                }

                return $this->begin($order);
            }
            $this->tell(['late' => $order['until']]);
        }

        return null;
    }

    /** The job that cmsjobs has sent before it was asked for, if there is one and it is not too late for it: the message says so then. */
    private function sentAhead(array &$message): ?array
    {
        $order = $this->gone ? null : $this->pipe->arrived();
        if ($order === null) {
            return null;
        }
        $this->confirm($order);
        if ($this->late($order)) {
            $message['late'] = $order['until'];

            return null;
        }

        return $order;
    }

    /** Whether cmsjobs may have given the job to another process by now. */
    private function late(array $order): bool
    {
        return isset($order['until']) && hrtime(true) >= $order['until'];
    }

    /** Makes the job of an order the one in hand. Nobody would hear of its outcome where cmsjobs has gone meanwhile. */
    private function begin(array $order): ?PipeJob
    {
        $this->asked = false;
        if ($this->gone || ! isset($order['id'])) {
            return null;
        }

        return $this->job = new PipeJob($this->app, $order, $this->connection, $order['queue']);
    }

    /** How far the job in hand is: people see it while the job runs. More often than twice a second only the last step is said. */
    public function progress(int $done, int $total, string $note): void
    {
        if ($this->job === null || $this->gone || (microtime(true) - $this->said < 0.5 && $done !== $total)) {
            return;
        }
        $this->said = microtime(true);
        try {
            $this->pipe->send(['progress' => ['done' => $done, 'total' => $total, 'note' => substr($note, 0, 1000)]]);
        } catch (Gone $e) { // heard again when the job ends: nothing is written inside it
        }
    }

    /** The last message of this process: the outcome of the job in hand, if it has one, and why it ends. */
    public function leave(array $why): void
    {
        $id = $this->job === null ? null : (int) $this->job->getJobId();
        $outcome = $this->outcome();
        if (isset($outcome['done']) && $outcome['done']['as'] !== 'nothing') {
            $id = null; // the job is done: it is not what ended the process
        }
        $this->tell($outcome + $why + ['job' => $id]);
    }

    /** Whether queue:pause holds the queue (Laravel 12 and newer): Laravel does not look itself where jobs come by popUsing. */
    private function paused(string $queue): bool
    {
        if ($this->looked === time()) { // it is in the cache, which may be far
            return $this->paused;
        }
        $this->looked = time();
        $manager = $this->app['queue'];

        return $this->paused = method_exists($manager, 'isPaused') && (Worker::$pausable ?? true) && $manager->isPaused($this->connection, $queue);
    }

    private function order(): ?array
    {
        try {
            $order = $this->pipe->receive(self::PATIENCE);
        } catch (Gone $e) {
            $this->alone();

            return null;
        }
        $this->confirm($order ?? []);

        return $order;
    }

    /** Forgets the outcomes that are written. */
    private function confirm(array $order): void
    {
        foreach ($order['settled'] ?? [] as $id) {
            unset($this->unconfirmed[$id]);
        }
    }

    private function tell(array $message): void
    {
        if ($this->gone) {
            $this->alone();

            return;
        }
        try {
            $this->pipe->send($message);
        } catch (Gone $e) {
            $this->alone();
        }
    }

    /** The outcome of the job in hand, which is in hand no more. */
    private function outcome(): array
    {
        if ($this->job === null) {
            return [];
        }
        $job = $this->job;
        $this->job = null;
        $done = $job->outcome() + ['tx' => $this->rollBack()];
        if ($done['as'] !== 'nothing') {
            $this->unconfirmed[$done['id']] = [$done, $job];
        }

        return ['done' => $done];
    }

    /** cmsjobs was killed: write what it may not have written, and stop. */
    private function alone(): void
    {
        $this->gone = true;
        $this->app['queue.worker']->shouldQuit = true;
        foreach ($this->unconfirmed as $id => [$done, $job]) {
            try {
                $this->write($done, $job);
                unset($this->unconfirmed[$id]);
            } catch (Throwable $e) { // the row stays reserved, and the job runs again
                $this->app['Illuminate\Contracts\Debug\ExceptionHandler']->report($e);
            }
        }
    }

    /** Writes an outcome under the fence of this attempt: anyone who has the row since then keeps it. */
    private function write(array $done, PipeJob $job): void
    {
        $config = $this->app['config']["queue.connections.{$this->connection}"];
        $this->app['db']->connection($config['connection'] ?? null)->transaction(function ($db) use ($config, $done, $job) {
            $row = $db->table($config['table'])->where('id', $done['id'])->where('attempts', $job->attempts())->whereNotNull('reserved_at');
            if ($done['as'] === 'release') {
                $row->update(['reserved_at' => null, 'available_at' => time() + $done['delay']]);
            } elseif ($row->delete() && $done['as'] === 'fail') {
                $failer = $this->failer ?? $this->own();
                $failer->log($this->connection, $job->getQueue(), $job->getRawBody(), new RuntimeException($done['exception']));
            }
        });
    }

    /** The application's own provider of failed jobs, which nobody has asked for yet. */
    private function own(): FailedJobProviderInterface
    {
        $this->app['queue.failer'];

        return $this->failer;
    }

    /** A transaction that a job forgot would swallow every later write of this process: undo it and say so. */
    private function rollBack(): int
    {
        $open = 0;
        foreach ($this->app['db']->getConnections() as $connection) {
            if ($connection->transactionLevel() === 0) {
                continue;
            }
            $open += $connection->transactionLevel();
            try {
                $connection->rollBack(0);
            } catch (Throwable $e) { // the connection is gone, and the transaction with it
                $connection->disconnect();
                (function () {
                    $this->transactions = 0;
                })->call($connection);
            }
        }

        return $open;
    }
}
