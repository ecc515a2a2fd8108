<?php

namespace CmsJobs\Laravel\Worker;

use RuntimeException;

/** A job is failed because it ended its PHP process again and again. */
class ProcessDied extends RuntimeException
{
}
