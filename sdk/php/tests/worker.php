<?php

// Tests of the worker's classes without a database: what a job tells of itself, and
// that the pipe's frames arrive whole. Prints nothing and exits 0 when all is well.

require '/usr/share/php/Illuminate/autoload.php';
spl_autoload_register(function (string $class) {
    $file = __DIR__ . '/../src/' . str_replace('\\', '/', substr($class, strlen('CmsJobs\\Laravel\\'))) . '.php';
    if (strncmp($class, 'CmsJobs\\Laravel\\', 16) === 0 && is_file($file)) {
        require $file;
    }
});

use CmsJobs\Laravel\Worker\Gone;
use CmsJobs\Laravel\Worker\Pipe;
use CmsJobs\Laravel\Worker\PipeJob;
use Illuminate\Container\Container;

$faults = 0;
function same(string $what, $want, $got): void
{
    global $faults;
    if ($want !== $got) {
        $faults++;
        fwrite(STDERR, "$what: want " . json_encode($want) . ', got ' . json_encode($got) . "\n");
    }
}

class Handler
{
    public function fire($job, $data)
    {
        $data['do'] === 'throw from failed' ? $job->fail(new LogicException('a')) : $job->{$data['do']}(...($data['with'] ?? []));
    }

    public function failed($data, $e, $uuid)
    {
        if ($data['do'] === 'throw from failed') {
            throw new RuntimeException('failed() itself failed');
        }
    }
}

$container = new Container();
Container::setInstance($container);
$container->instance(Illuminate\Contracts\Events\Dispatcher::class, new Illuminate\Events\Dispatcher($container));

function job(array $data, array $row = []): PipeJob
{
    global $container;
    $payload = json_encode(['uuid' => 'u', 'displayName' => 'H', 'job' => 'Handler@fire', 'data' => $data]);

    return new PipeJob($container, $row + ['id' => 7, 'attempts' => 2, 'payload' => $payload, 'queue' => 'q'], 'database', 'q');
}

$job = job(['do' => 'delete']);
same('attempts', 2, $job->attempts());
same('before it ran', ['id' => 7, 'as' => 'nothing'], $job->outcome());
$job->fire();
same('deleted', ['id' => 7, 'as' => 'delete'], $job->outcome());

$job = job(['do' => 'release', 'with' => [30]]);
$job->fire();
same('released', ['id' => 7, 'as' => 'release', 'delay' => 30, 'exception' => ''], $job->outcome());
$job->threw(new RuntimeException('why'));
same('released after an exception', true, strpos($job->outcome()['exception'], 'RuntimeException: why') === 0);

$job = job(['do' => 'fail', 'with' => []], ['crash' => 'signal: killed']);
$job->fire();
same('failed', 'fail', $job->outcome()['as']);
same('names the crash before', true, strpos($job->outcome()['exception'], "\n\nThe attempt before ended so: signal: killed") > 0);

$job = job(['do' => 'throw from failed']);
try {
    $job->fire();
} catch (RuntimeException $e) {
}
same('a failed() that throws loses no job', ['fail', 0], [$job->outcome()['as'], strpos($job->outcome()['exception'], 'LogicException: a')]);

$job = job(['do' => 'delete']);
$job->delete();
$job->fail(new LogicException('late'));
same('deleted, then failed: as in Laravel no failed job', ['id' => 7, 'as' => 'delete'], $job->outcome());

$job = job(['do' => 'delete'], ['give_up' => 'it killed three processes']);
$job->fire();
same('given up', ['fail', true], [$job->outcome()['as'], strpos($job->outcome()['exception'], 'ProcessDied: it killed three processes') > 0]);

$job = job(['do' => 'fail', 'with' => []]);
$job->failedWith(str_repeat('x', 1 << 20));
same('a long exception is cut', true, strlen($job->outcome()['exception']) < Pipe::LONGEST_TEXT);

// Orders arrive whole however they are cut, messages leave as JSON whatever is in them.
[$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$pipe = new Pipe($ours, $ours);
$order = json_encode(['id' => 1, 'payload' => str_repeat("ü\n", 5000)]);
$frame = pack('N', strlen($order)) . $order;
fwrite($theirs, substr($frame, 0, 3));
same('no order yet', null, $pipe->receive(0));
fwrite($theirs, substr($frame, 3) . pack('N', 2) . '{}');
same('an order in two parts', json_decode($order, true), $pipe->receive(5));
same('the one behind it', [], $pipe->receive(5));
$pipe->send(['done' => ['exception' => "not \xff UTF-8"]]);
$head = unpack('N', fread($theirs, 4))[1];
same('text that is no UTF-8', ['done' => ['exception' => "not \u{FFFD} UTF-8"]], json_decode(fread($theirs, $head), true));
fclose($theirs);
foreach (['receive' => [1], 'send' => [['more' => true]]] as $method => $arguments) {
    try {
        $pipe->$method(...$arguments);
        same("$method after the other end has gone", 'Gone', 'nothing');
    } catch (Gone $e) {
    }
}

// The words of tags() are in the payload as Laravel itself writes it, and nothing keeps a job from being dispatched.
class Tagged
{
    public $tags;

    public function __construct($tags)
    {
        $this->tags = $tags;
    }

    public function tags()
    {
        if ($this->tags === 'throw') {
            throw new LogicException('no tags');
        }

        return $this->tags;
    }
}

class Listens
{
    public function tags($event)
    {
        return ['heard:' . $event];
    }
}

CmsJobs\Laravel\Tags::register();
$queue = new class extends Illuminate\Queue\NullQueue {
    public function payloadOf($job)
    {
        return json_decode($this->createPayload($job, 'q'), true);
    }
};
$queue->setContainer($container);
$queue->setConnectionName('database');
same('tags() is asked', ['order:7', 'late'], $queue->payloadOf(new Tagged(['order:7', 'late', 'late', 5, '', str_repeat('x', 192)]))['tags']);
same('a job without tags()', false, isset($queue->payloadOf(new Handler)['tags']));
same('a tags() that throws', false, isset($queue->payloadOf(new Tagged('throw'))['tags']));
same('a bound', 50, count(CmsJobs\Laravel\Tags::of(new Tagged(array_map('strval', range(1, 100))))));
same('a listener', ['heard:paid'], CmsJobs\Laravel\Tags::of(new Illuminate\Events\CallQueuedListener(Listens::class, 'handle', ['paid'])));

// A queue that queue:pause holds is not asked for; the outcome of the job in hand leaves all the same.
$manager = new class {
    public $paused = true;
    public $asked = [];

    public function isPaused($connection, $queue)
    {
        $this->asked[] = "$connection $queue";

        return $this->paused;
    }
};
$container->instance('queue', $manager);
$container->instance('db', new class {
    public function getConnections()
    {
        return [];
    }
});
[$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
stream_set_blocking($theirs, false);
$desk = new CmsJobs\Laravel\Worker\Desk($container, new Pipe($ours, $ours), 'database');
same('a paused queue has no job', null, $desk->pop('mail'));
same('it is not asked for', '', (string) fread($theirs, 1024));
same('the manager was asked', ['database mail'], $manager->asked);
$manager->paused = false;
sleep(1);
$order = json_encode(['id' => 9, 'queue' => 'mail', 'attempts' => 1, 'payload' => '{}']);
fwrite($theirs, pack('N', strlen($order)) . $order);
same('after the pause it has one', 9, $desk->pop('mail')->getJobId());
same('it was asked for', '{"more":true}', substr(fread($theirs, 1024), 4));
$desk->progress(1, 2, 'half');
$desk->progress(1, 2, 'too soon after the last');
$desk->progress(2, 2, '');
$said = '{"progress":{"done":1,"total":2,"note":"half"}}';
$last = '{"progress":{"done":2,"total":2,"note":""}}';
same('how far it is', pack('N', strlen($said)) . $said . pack('N', strlen($last)) . $last, fread($theirs, 1024));
$desk->job()->delete();
$manager->paused = true;
sleep(1);
same('paused again', null, $desk->pop('mail'));
same('the outcome of the job in hand leaves', '{"done":{"id":9,"as":"delete","tx":0}}', substr(fread($theirs, 1024), 4));

// A job that was sent ahead is begun without asking, and what is printed from then on is marked; one that comes too late is dropped.
$manager->paused = false;
sleep(1);
[$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
stream_set_blocking($theirs, false);
$log = fopen('php://memory', 'w+b');
$desk = new CmsJobs\Laravel\Worker\Desk($container, new Pipe($ours, $ours, $log), 'database');
$send = function (int $id, array $more = []) use ($theirs) {
    $order = json_encode(['id' => $id, 'queue' => 'mail', 'attempts' => 1, 'payload' => '{}'] + $more);
    fwrite($theirs, pack('N', strlen($order)) . $order);
};
$send(1);
same('the first is asked for', [1, '{"more":true}'], [$desk->pop('mail')->getJobId(), substr(fread($theirs, 1024), 4)]);
same('nothing is marked', '', stream_get_contents($log, -1, 0));
$desk->job()->delete();
$send(2, ['until' => $until = hrtime(true) + 60 * 1000000000]);
same('the one that is there is begun', 2, $desk->pop('mail')->getJobId());
same('this is said', '{"done":{"id":1,"as":"delete","tx":0},"took":' . $until . '}', substr(fread($theirs, 1024), 4));
same('and marked', "\0cmsjobs: next job\0\n", stream_get_contents($log, -1, 0));
$desk->job()->delete();
$send(3, ['until' => $late = hrtime(true) - 1, 'settled' => [1]]);
$send(4, ['until' => $later = hrtime(true) - 1]);
$send(5);
same('the two that are late are not begun', 5, $desk->pop('mail')->getJobId());
$said = '{"done":{"id":2,"as":"delete","tx":0},"late":' . $late . ',"more":true}';
$more = '{"late":' . $later . '}';
same('this is said, too', pack('N', strlen($said)) . $said . pack('N', strlen($more)) . $more, fread($theirs, 1024));
$desk->job()->delete();
$send(6, ['until' => hrtime(true) + 60 * 1000000000]);
fread($theirs, 1024);
fclose($theirs);
$container->instance('queue.worker', new stdClass);
$container->instance('Illuminate\\Contracts\\Debug\\ExceptionHandler', new class {
    public function report($e)
    {
    }
});
$container->instance('config', ['queue.connections.database' => ['table' => 'jobs']]);
same('nothing is begun for a cmsjobs that has gone', null, $desk->pop('mail'));
exit($faults === 0 ? 0 : 1);
