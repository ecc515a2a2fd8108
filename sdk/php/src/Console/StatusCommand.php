<?php

namespace CmsJobs\Laravel\Console;

use CmsJobs\Laravel\Queue;
use Illuminate\Console\Command;

class StatusCommand extends Command
{
    protected $signature = 'cmsjobs:status';
    protected $description = 'Show how many jobs wait for cmsjobs and how many failed';

    public function handle(Queue $queue): int
    {
        $failed = $queue->failed();
        $this->line("waiting or running: {$queue->pending()}");
        $this->line("failed: $failed");

        return $failed === 0 ? 0 : 1;
    }
}
