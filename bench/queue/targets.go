package main

import (
	"strings"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

// figures are what the parts found, by name: jobs a second, ms, or what else
// the name says.
type figures map[string]float64

// target is a ratio, or a figure, that is aimed at.
type target struct {
	what     string
	value    float64
	aim      float64
	atMost   bool
	measured bool
}

// over is the ratio of two figures.
func (f figures) over(what, mine, theirs string, aim float64) target {
	a, b := f[mine], f[theirs]
	return target{what: what, value: a / max(b, 1e-9), aim: aim, measured: a > 0 && b > 0}
}

func (f figures) atLeast(what, mine string, aim float64) target {
	return target{what: what, value: f[mine], aim: aim, measured: f[mine] > 0}
}

func (f figures) below(what, mine string, aim float64) target {
	value, there := f[mine]
	return target{what: what, value: value, aim: aim, atMost: true, measured: there}
}

// ratio notes how two figures compare, where both are there.
func (f figures) ratio(name, a, b string) {
	if f[a] > 0 && f[b] > 0 {
		f[name] = f[a] / f[b]
	}
}

// peers notes what River and graphile-worker did.
func (f figures) peers(river, graphile peerFigures) {
	for name, c := range map[string]cost{"river": river.costs["drain tuned"],
		"river enqueue 1": river.costs["enqueue 1"], "river enqueue 10": river.costs["enqueue 10"],
		"graphile": graphile.costs["drain tuned"], "river deep": river.costs[deep],
		"graphile deep": graphile.costs[deep]} {
		if c.jobs > 0 {
			f[name] = c.rate()
		}
	}
}

// targets compares the run with what is aimed at.
func (f figures) targets() *table {
	t := &table{title: "Against the aims", note: "Each ratio is of two figures of this run, jobs a second; " +
		"drains on MySQL and MariaDB are the medians of turns.",
		head: page.AimHead[:]}
	aims := []target{
		f.over("drain, MySQL : MariaDB, in turns", "side mysql best", "side mariadb best", 0.9),
		f.over("drain, 10 slots and nothing ahead (default), MySQL : MariaDB, in turns", "side mysql default",
			"side mariadb default", 0.9),
	}
	for _, server := range []string{"MySQL", "MariaDB"} {
		aims = append(aims, f.onMySQL(server)...)
	}
	aims = append(aims,
		f.over("drain, MariaDB : River tuned", "mariadb best", "river", 2),
		f.over("drain, MariaDB : graphile-worker tuned", "mariadb best", "graphile", 1.3),
		f.over("drain, PostgreSQL : River tuned", "postgres best", "river", 1.5),
		f.over("drain, PostgreSQL : graphile-worker tuned", "postgres best", "graphile", 1.4),
		f.over("drain of 5 times as many, PostgreSQL : River tuned", "postgres deep", "river deep", 1.5),
		f.over("drain of 5 times as many, PostgreSQL : graphile-worker tuned", "postgres deep", "graphile deep", 1.4),
		f.over("drain, SQLite : River tuned", "sqlite best", "river", 3),
		f.over("drain, SQLite : backlite", "sqlite best", "backlite", 40),
		f.atLeast("drain, SQLite, jobs/s", "sqlite best", 60_000),
		f.over("enqueue, 1 caller, PostgreSQL : River", "postgres enqueue 1", "river enqueue 1", 1),
		f.over("enqueue, 10 callers, PostgreSQL : River", "postgres enqueue 10", "river enqueue 10", 1),
	)
	for _, x := range aims {
		if x.measured {
			t.add(x.cells()...)
		}
	}
	return t
}

// onMySQL are the aims on one server of MySQL's protocol.
func (f figures) onMySQL(server string) []target {
	name := strings.ToLower(server) + " "
	turns := "side " + name
	return []target{
		f.over("drain, "+server+" : Laravel's one worker", turns+"best", turns+"laravel",
			map[string]float64{"MySQL": 60, "MariaDB": 100}[server]),
		f.over("drain, one slot, "+server+" : Laravel's one worker", turns+"1", turns+"laravel", 3),
		f.over("enqueue, 1 caller, "+server+" : Laravel", name+"enqueue 1", name+"laravel enqueue", 1),
		f.below("pick-up, "+server+", p50, ms", name+"pick-up", 1.4),
		f.below(server+": claim p99 over 5,000,000 : over 1,000 waiting, with the offered index", name+"deep", 2),
		f.below(server+": claim p99 beside a long transaction : without, 100,000 waiting", name+"snapshot", 2),
		f.below(server+": idle, queries a second", name+"idle queries", 1),
		f.below(server+": idle, client's % of a core", name+"idle cpu", 0.1),
		f.below(server+": idle, resident MiB, the program's file included", name+"idle memory", 25),
		f.below(server+": idle, private MiB", name+"idle own", 25),
		f.below(server+": idle, MiB touched in 15 s", name+"idle touched", 25),
	}
}

func (x target) cells() []string {
	return page.Aim{What: x.what, Value: x.value, Limit: x.aim, AtMost: x.atMost}.Cells()
}
