<?php

namespace CmsJobs\Laravel;

use Illuminate\Events\CallQueuedListener;
use Illuminate\Mail\SendQueuedMailable;
use Illuminate\Notifications\SendQueuedNotifications;
use Illuminate\Queue\Queue;
use Throwable;

/**
 * The words of a job's tags() method, put into its payload when it is dispatched, as
 * Horizon does: cmsjobs shows them and finds jobs by them. Jobs without the method are
 * left as they are, as is a payload that another package has put tags into.
 */
class Tags
{
    private const MOST = 50;
    private const LONGEST = 191;

    public static function register(): void
    {
        Queue::createPayloadUsing(function ($connection, $queue, array $payload): array {
            $command = $payload['data']['command'] ?? null;
            $tags = is_object($command) && ! isset($payload['tags']) ? self::of($command) : [];

            return $tags === [] ? [] : ['tags' => $tags];
        });
    }

    /** @return string[] */
    public static function of(object $command): array
    {
        try {
            $tags = self::asked($command);
        } catch (Throwable $e) { // no reason to dispatch nothing
            return [];
        }
        $tags = array_filter((array) $tags, fn ($tag) => is_string($tag) && $tag !== '' && strlen($tag) <= self::LONGEST);

        return array_slice(array_values(array_unique($tags)), 0, self::MOST);
    }

    private static function asked(object $command)
    {
        if ($command instanceof CallQueuedListener) {
            $listener = app($command->class);

            return method_exists($listener, 'tags') ? $listener->tags($command->data[0] ?? null) : [];
        }
        if ($command instanceof SendQueuedMailable) {
            $command = $command->mailable;
        } elseif ($command instanceof SendQueuedNotifications) {
            $command = $command->notification;
        }

        return method_exists($command, 'tags') ? $command->tags() : [];
    }
}
