package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// PHP says whether and how PHP's own jobs are run.
type PHP struct {
	Enabled    bool                `koanf:"enabled"`
	Binary     string              `koanf:"binary"`
	Artisan    string              `koanf:"artisan"` // "": artisan in cms.dir
	Connection string              `koanf:"connection"`
	Poll       time.Duration       `koanf:"poll"`
	MaxCrashes int                 `koanf:"max_crashes"`
	Processes  int                 `koanf:"processes"` // in all; 0: no limit
	Memory     Size                `koanf:"memory"`    // of all processes; 0: no limit
	Force      bool                `koanf:"force"`     // jobs run in maintenance mode, too
	Schedule   bool                `koanf:"schedule"`  // php artisan schedule:run, each minute
	Queues     map[string]PHPQueue `koanf:"queues"`
	// Silenced are classes whose completed jobs are not listed.
	Silenced []string `koanf:"silenced"`
}

// PHPQueue says how the PHP processes of one queue work. Zero fields mean the
// defaults of DefaultPHPQueue; Tries and Timeout may be 0, which is no limit.
type PHPQueue struct {
	Processes Range          `koanf:"processes"`
	Tries     *int           `koanf:"tries"`
	Timeout   *time.Duration `koanf:"timeout"`
	Memory    Size           `koanf:"memory"`
	MaxJobs   int            `koanf:"max_jobs"`
	MaxTime   time.Duration  `koanf:"max_time"`
	Nice      int            `koanf:"nice"` // added to the service's own
}

func defaultPHP() PHP {
	return PHP{Binary: "php", Connection: "database", Poll: 50 * time.Millisecond, MaxCrashes: 3,
		Queues: map[string]PHPQueue{}}
}

// Filled is q with the defaults of Laravel's queue:work where nothing is said.
func (q PHPQueue) Filled() PHPQueue {
	if q.Processes == (Range{}) {
		q.Processes = Range{1, 1}
	}
	if q.Tries == nil {
		tries := 1
		q.Tries = &tries
	}
	if q.Timeout == nil {
		timeout := time.Minute
		q.Timeout = &timeout
	}
	if q.Memory == 0 {
		q.Memory = 128 << 20
	}
	return q
}

// Served are the queues whose jobs of PHP are run, sorted; none where that is off.
func (p PHP) Served() []string {
	if !p.Enabled {
		return nil
	}
	return slices.Sorted(maps.Keys(p.Queues))
}

// ArtisanFile is the site's artisan; "" where nothing says where it is.
func (c *Config) ArtisanFile() string {
	if c.PHP.Artisan != "" || c.CMS.Dir == "" {
		return c.PHP.Artisan
	}
	return filepath.Join(c.CMS.Dir, "artisan")
}

func (p PHP) check(r *report) {
	if p.Enabled && len(p.Queues) == 0 {
		r.add("php/queues", "name at least one queue whose jobs of PHP are run, for example default: {processes: 2}")
	}
	if p.Enabled && p.Binary == "" {
		r.add("php/binary", "the PHP program must be named, for example php8.3")
	}
	if p.Enabled && jobs.CheckQueue(p.Connection) != nil {
		r.add("php/connection", "%q is no name of a queue connection", p.Connection)
	}
	r.atLeastFor("php/poll", p.Poll, time.Millisecond)
	r.between("php/max_crashes", p.MaxCrashes, 1, 100)
	r.between("php/processes", p.Processes, 0, 1000)
	least := 0
	r.between("php/silenced", len(p.Silenced), 0, 200)
	for name, q := range p.Queues {
		q.check(r, name)
		least += q.Filled().Processes.Least
	}
	if p.Processes > 0 && least > p.Processes {
		r.add("php/processes", "%d, and the queues keep %d at least", p.Processes, least)
	}
}

func (q PHPQueue) check(r *report, name string) {
	path := "php/queues/" + name + slash
	if jobs.CheckQueue(name) != nil {
		r.add("php/queues", "%q is no name of a queue", name)
	}
	r.between(path+"processes", q.Processes.Least, 0, 1000)
	r.between(path+"processes", q.Processes.Most, 0, 1000)
	if q.Tries != nil {
		r.between(path+"tries", *q.Tries, 0, 255)
	}
	if q.Timeout != nil {
		r.atLeastFor(path+"timeout", *q.Timeout, 0)
		if *q.Timeout%time.Second != 0 {
			r.add(path+"timeout", "%s: PHP counts whole seconds", *q.Timeout)
		}
	}
	if q.Memory != 0 && q.Memory < 16<<20 {
		r.add(path+"memory", "%s is too small for PHP: at least 16MiB", q.Memory)
	}
	r.atLeast(path+"max_jobs", q.MaxJobs, 0)
	r.atLeastFor(path+"max_time", q.MaxTime, 0)
	r.between(path+"nice", q.Nice, 0, 19)
}

// Range is how many processes there are, at least and at most: 2 or 1..8.
type Range struct{ Least, Most int }

// ParseRange reads a Range.
func ParseRange(text string) (Range, error) {
	from, to, moves := strings.Cut(strings.TrimSpace(text), "..")
	least, err := strconv.Atoi(strings.TrimSpace(from))
	most := least
	if err == nil && moves {
		most, err = strconv.Atoi(strings.TrimSpace(to))
	}
	if err != nil || least < 1 || most < least {
		return Range{}, fmt.Errorf("%q is no number of processes: write 2, or 1..8 for at least 1 and at most 8", text)
	}
	return Range{least, most}, nil
}

func (x Range) String() string {
	if x.Least == x.Most {
		return strconv.Itoa(x.Least)
	}
	return fmt.Sprintf("%d..%d", x.Least, x.Most)
}

// MarshalText writes a range as the file has it.
func (x Range) MarshalText() ([]byte, error) { return []byte(x.String()), nil }
