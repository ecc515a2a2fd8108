package cms

import (
	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
)

// QueueTable is the name of the table of PHP's queue connection "database", without
// the prefix: what config/queue.php says, else DB_QUEUE_TABLE, else "jobs". (Laravel
// reads that variable since version 11; older applications write the name into the
// file.) A file that cannot be read says nothing.
func (s *Site) QueueTable() string {
	c, err := laravel.Open(s.Root, s.Env, "queue")
	if err != nil {
		return s.Env.String("DB_QUEUE_TABLE", "jobs")
	}
	if name, err := c.Value("queue", "connections", "database", "table"); err == nil {
		if text, is := name.(string); is && text != "" {
			return text
		}
	}
	if c.Has("queue") {
		return "jobs" // the file says nothing that can be read
	}
	return s.Env.String("DB_QUEUE_TABLE", "jobs")
}
