<?php
// Prints payloads as Debian's Laravel writes them: {"name": payload, …}.

error_reporting(E_ALL & ~E_DEPRECATED & ~E_NOTICE & ~E_WARNING);
foreach (['/usr/share/php/Illuminate/autoload.php', '/usr/share/php/Illuminate/Foundation/autoload.php',
    '/usr/share/php/Illuminate/Mail/autoload.php', '/usr/share/php/Illuminate/Notifications/autoload.php',
    '/usr/share/php/Opis/Closure/autoload.php', '/usr/share/php/Laravel/SerializableClosure/autoload.php'] as $file) {
    if (is_file($file)) {
        require_once $file;
    }
}

use Illuminate\Bus\Batchable;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldBeEncrypted;
use Illuminate\Contracts\Queue\ShouldBeUnique;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Database\Eloquent\Collection;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\SerializesModels;

class Post extends Model
{
    protected $guarded = [];

    public static function numbered(int $id): self
    {
        $post = new self(['id' => $id]);
        $post->exists = true;

        return $post;
    }
}

class SendInvoice implements ShouldQueue
{
    use Batchable, InteractsWithQueue, Queueable, SerializesModels;

    public $tries = 5;
    public $timeout = 120;
    public $post;
    public $others;
    public $total = 12.5;
    public $paid = false;
    public $note = null;
    public $options = ['copy' => true, 'lines' => [1, 2, 3]];
    public $password = 'hunter2-hunter2';
    public $due;
    public $same;
    protected $currency = 'EUR';
    private $reference = "Größe 🎉 \"quoted\"\n";

    public function __construct()
    {
        $this->post = Post::numbered(17);
        $this->others = new Collection([Post::numbered(3), Post::numbered(4)]);
        $this->due = new DateTime('2026-11-22 10:00:00', new DateTimeZone('Asia/Ho_Chi_Minh'));
        $this->same = (object) ['a' => (object) ['b' => 1]];
        $this->same->again = $this->same->a;
    }

    public function backoff()
    {
        return [1, 5, 30];
    }

    public function retryUntil()
    {
        return new DateTime('@1800000000');
    }
}

class Sealed extends SendInvoice implements ShouldBeEncrypted
{
}

class OnlyOnce implements ShouldQueue, ShouldBeUnique
{
    use Queueable;

    public $uniqueFor = 3600;

    public function uniqueId()
    {
        return 'site-1';
    }
}

class Welcome extends Illuminate\Mail\Mailable implements ShouldQueue
{
    use Queueable, SerializesModels;

    public $post;
    public $resetLink = 'https://example.com/reset/abc123';

    public function __construct()
    {
        $this->post = Post::numbered(8);
        $this->to('reader@example.com', 'A Reader')->subject('Welcome');
    }
}

class InvoicePaid extends Illuminate\Notifications\Notification implements ShouldQueue
{
    use Queueable;

    public $invoice = 'R-2026-1';
}

class PostPublished
{
    use SerializesModels;

    public $post;

    public function __construct()
    {
        $this->post = Post::numbered(21);
    }
}

class NotifySearch implements ShouldQueue
{
}

class Capture extends Illuminate\Queue\NullQueue
{
    public function payload($job, $data = '')
    {
        return json_decode($this->createPayload($job, 'default', $data), true);
    }
}

$app = new Illuminate\Foundation\Application(sys_get_temp_dir());
$app->instance('config', new Illuminate\Config\Repository(['app' => []]));
$app->singleton(Illuminate\Contracts\Encryption\Encrypter::class, function () {
    return new Illuminate\Encryption\Encrypter(str_repeat('k', 32), 'AES-256-CBC');
});
$queue = new Capture();
$queue->setContainer($app);
$queue->setConnectionName('database');

$batched = (new SendInvoice())->withBatchId('9a1c4f0e-0000-4000-8000-000000000001');
$chained = (new OnlyOnce())->chain([new SendInvoice(), new OnlyOnce()]);
$secret = 'in-the-closure';
echo json_encode([
    'job' => $queue->payload(new SendInvoice()),
    'encrypted' => $queue->payload(new Sealed()),
    'unique' => $queue->payload(new OnlyOnce()),
    'batch' => $queue->payload($batched),
    'chain' => $queue->payload($chained),
    'mailable' => $queue->payload(new Illuminate\Mail\SendQueuedMailable(new Welcome())),
    'notification' => $queue->payload(new Illuminate\Notifications\SendQueuedNotifications(
        new Collection([Post::numbered(5)]), new InvoicePaid(), ['mail'])),
    'listener' => $queue->payload(new Illuminate\Events\CallQueuedListener('NotifySearch', 'handle', [new PostPublished()])),
    'broadcast' => $queue->payload(new Illuminate\Broadcasting\BroadcastEvent(new PostPublished())),
    'closure' => $queue->payload(Illuminate\Queue\CallQueuedClosure::create(function () use ($secret) {
        return $secret;
    })),
    'method' => $queue->payload('Reports@daily', ['day' => '2026-11-22', 'token' => 'abc-def-ghi']),
], JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR), "\n";
