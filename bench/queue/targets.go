package main

import "fmt"

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
	for name, c := range map[string]cost{"river": river.costs["drain tuned"], "river enqueue 1": river.costs["enqueue 1"], "river enqueue 10": river.costs["enqueue 10"], "graphile": graphile.costs["drain tuned"]} {
		if c.jobs > 0 {
			f[name] = c.rate()
		}
	}
}

// targets compares the run with what is aimed at.
func (f figures) targets() *table {
	t := &table{title: "Against the aims", note: "Each ratio is of two figures of this run, jobs a second.", head: []string{"what", "this run", "aim", ""}}
	for _, x := range []target{
		f.over("drain, MariaDB : Laravel's one worker", "mariadb best", "laravel", 60),
		f.over("drain, one slot, MariaDB : Laravel's one worker", "mariadb 1", "laravel", 3),
		f.over("drain, MariaDB : River tuned", "mariadb best", "river", 2),
		f.over("drain, MariaDB : graphile-worker tuned", "mariadb best", "graphile", 1.3),
		f.over("drain, PostgreSQL : River tuned", "postgres best", "river", 1),
		f.over("drain, PostgreSQL : graphile-worker tuned", "postgres best", "graphile", 1),
		f.over("drain, SQLite : River tuned", "sqlite best", "river", 3),
		f.over("drain, SQLite : backlite", "sqlite best", "backlite", 40),
		f.over("enqueue, 1 caller, MariaDB : Laravel", "mariadb enqueue 1", "laravel enqueue", 1),
		f.over("enqueue, 1 caller, PostgreSQL : River", "postgres enqueue 1", "river enqueue 1", 1),
		f.over("enqueue, 10 callers, PostgreSQL : River", "postgres enqueue 10", "river enqueue 10", 1),
		f.below("pick-up, MariaDB, p50, ms", "pick-up", 1.4),
		f.below("claim p99 over 5,000,000 : over 1,000 waiting, with the offered index", "deep", 2),
		f.below("claim p99 beside a long transaction : without, 100,000 waiting", "snapshot", 2),
		f.below("idle, queries a second", "idle queries", 1),
		f.below("idle, client's % of a core", "idle cpu", 0.1),
		f.below("idle, resident MiB, the program's file included", "idle memory", 25),
		f.below("idle, MiB of its own", "idle own", 25),
		f.below("idle, MiB touched in 15 s", "idle touched", 25),
	} {
		if x.measured {
			t.add(x.cells()...)
		}
	}
	return t
}

func (x target) cells() []string {
	value, aim, verdict := fmt.Sprintf("%.2f", x.value), fmt.Sprintf("≥ %g", x.aim), "missed"
	if x.atMost {
		aim = fmt.Sprintf("≤ %g", x.aim)
	}
	if x.atMost && x.value <= x.aim || !x.atMost && x.value >= x.aim {
		verdict = "reached"
	}
	return []string{x.what, value, aim, verdict}
}
