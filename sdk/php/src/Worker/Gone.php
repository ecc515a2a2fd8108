<?php

namespace CmsJobs\Laravel\Worker;

use RuntimeException;

/** cmsjobs does not listen any more: it was killed. */
class Gone extends RuntimeException
{
}
