<?php

namespace App\Jobs;

use Illuminate\Bus\Batchable;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldBeEncrypted;
use Illuminate\Contracts\Queue\ShouldBeUnique;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\PendingDispatch;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\Middleware\WithoutOverlapping;
use Illuminate\Support\Facades\DB;

/** A job that behaves as its name says. */
class Probe implements ShouldQueue
{
    use Batchable, InteractsWithQueue, Queueable;

    public $what;

    public function __construct(string $what, array $set = [])
    {
        $this->what = $what;
        foreach ($set as $name => $value) {
            $this->$name = $value;
        }
    }

    /** Writes one event of a job to the test's log. */
    public static function say(string $what, string $event): void
    {
        file_put_contents(getenv('PROBE_DIR') . '/events.log', "$what: $event\n", FILE_APPEND | LOCK_EX);
    }

    /** What a row of the queue is called in the log. */
    public static function of($job): string
    {
        $payload = $job->payload();
        $command = $payload['data']['command'] ?? '';
        if (is_string($command) && strncmp($command, 'O:', 2) === 0 && ($probe = unserialize($command)) instanceof self) {
            return $probe->what;
        }

        return $payload['displayName'] ?? 'no name';
    }

    public static function push($app, string $queue, string $what, array $set): void
    {
        $class = self::class;
        switch ($what) {
            case 'encrypted': $class = ProbeEncrypted::class; break;
            case 'unique': $class = ProbeUnique::class; break;
            case 'until': $class = ProbeUntil::class; break;
        }
        if ($what === 'big') {
            $set['big'] = str_repeat('x', 6 << 20);
        }
        $probe = new $class($what, $set);
        if ($what === 'unique') {
            for ($i = 0; $i < 2; $i++) {
                (new PendingDispatch($probe))->onQueue($queue);
            }
        } elseif ($what === 'chain') {
            $app['queue']->push($probe->chain([(new self('chained'))->onQueue($queue)]), '', $queue);
        } elseif ($what === 'batch') {
            $app->make(\Illuminate\Contracts\Bus\Dispatcher::class)->batch([$probe, new self('batch-throw', ['tries' => 1])])->allowFailures()->onQueue($queue)->dispatch();
        } elseif ($what === 'missing') {
            DB::table('jobs')->insert(['queue' => $queue, 'attempts' => 0, 'available_at' => time(), 'created_at' => time(), 'payload' => json_encode([
                'uuid' => 'missing-uuid', 'displayName' => 'missing', 'job' => 'Illuminate\Queue\CallQueuedHandler@call', 'maxTries' => 1,
                'data' => ['commandName' => 'App\Jobs\Gone', 'command' => 'O:13:"App\Jobs\Gone":0:{}'],
            ])]);
        } else {
            $app['queue']->push($probe, '', $queue);
        }
    }

    public function middleware(): array
    {
        return $this->what === 'overlap' ? [(new WithoutOverlapping('k'))->releaseAfter(1)] : [];
    }

    /** Jobs of measurements: they do no more than their name says. */
    private function measured(): bool
    {
        switch ($this->what) {
            case 'noop': return true;
            case 'nap': usleep(5000); return true;
            case 'clock': file_put_contents(getenv('PROBE_DIR') . '/picked', sprintf("%.3f\n", 1000 * (microtime(true) - $this->made)), FILE_APPEND); return true;
            case 'die': file_put_contents(getenv('PROBE_DIR') . '/died-' . $this->job->getJobId(), sprintf('%.6f', microtime(true))); posix_kill(getmypid(), SIGKILL); sleep(1); return true;
            case 'mark': file_put_contents(getenv('PROBE_DIR') . '/marks', "{$this->n} " . getmypid() . "\n", FILE_APPEND | LOCK_EX); usleep(2000); return true;
        }

        return false;
    }

    public function handle(): void
    {
        if ($this->measured()) {
            return;
        }
        self::say($this->what, "run {$this->attempts()}");
        switch ($this->what) {
            case 'throw': case 'until': case 'batch-throw': throw new \RuntimeException('on purpose');
            case 'release': if ($this->attempts() < 3) { $this->release(1); } return;
            case 'release-then-throw': $this->release(1); throw new \RuntimeException('after release');
            case 'fail': $this->fail(new \LogicException('failed by hand')); return;
            case 'delete-then-fail': $this->delete(); $this->fail(new \LogicException('x')); return;
            case 'delete': $this->delete(); return;
            case 'sleep': case 'sleep-fail': sleep(20); return;
            case 'hang': pcntl_signal(SIGALRM, SIG_IGN); $end = microtime(true) + 3; while (microtime(true) < $end) { usleep(1000); } return;
            case 'exit': exit(3);
            case 'oom': $a = str_repeat('x', 1 << 20); $b = []; while (true) { $b[] = $a . count($b); }
            case 'segv': posix_kill(getmypid(), SIGSEGV); sleep(1); return;
            case 'talk': echo "begun\n"; cmsjobs_progress(1, 3, 'password=hunter2'); cmsjobs_progress(2, 3); $this->waitFor('more'); cmsjobs_progress(3, 3); echo "password=hunter2\n"; $this->waitFor('end'); echo "done\n"; return;
            case 'print': echo "hello\x00\x00\x00\x05junk from a job\n"; fwrite(STDERR, "and stderr\n"); echo 'no end of line'; return;
            case 'opentx': DB::beginTransaction(); DB::table('effects')->insert(['n' => -1, 'pid' => 0]); return;
            case 'dbkill': try { DB::statement('kill ' . DB::selectOne('select connection_id() as i')->i); } catch (\Throwable $e) { } DB::select('select 1'); return;
            case 'dbkill-in-tx': DB::beginTransaction(); try { DB::statement('kill ' . DB::selectOne('select connection_id() as i')->i); } catch (\Throwable $e) { } DB::select('select 1'); return;
            case 'child': exec('sleep 6 >/dev/null 2>&1 &'); return;
            case 'child-exit': exec('sleep 6 >/dev/null 2>&1 &'); exit(3);
            case 'big': self::say('big', 'length ' . strlen($this->big)); return;
            case 'effect': DB::table('effects')->insert(['n' => $this->n, 'pid' => getmypid()]); usleep(5000); return;
            case 'slow': self::say('slow', 'begun'); sleep(2); DB::table('effects')->insert(['n' => $this->n, 'pid' => getmypid()]); return;
        }
    }

    private function waitFor(string $file): void
    {
        for ($i = 0; $i < 3000 && !file_exists(getenv('PROBE_DIR') . "/$file"); $i++) {
            clearstatcache();
            usleep(10000);
        }
    }

    public function failed($e): void
    {
        self::say($this->what, 'failed() ' . get_class($e));
    }
}

class ProbeEncrypted extends Probe implements ShouldBeEncrypted
{
}

class ProbeUnique extends Probe implements ShouldBeUnique
{
    public $uniqueFor = 60;

    public function uniqueId(): string
    {
        return 'u';
    }
}

class ProbeUntil extends Probe
{
    public function retryUntil()
    {
        return now()->subSeconds(1);
    }
}
