package main

import (
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

// results are what a run found.
type results struct {
	series   []*series
	limits   []limit
	settings []chosen
	absent   []string // peers that are not installed, and why
}

// series is what somebody does on one server, by the number of processes.
type series struct {
	server, who string
	points      []point
}

type point struct {
	processes int
	figures
}

// chosen is how a peer was set up where it was best.
type chosen struct {
	peer      string
	processes int
	how       string
}

const laravelName = "Laravel"

// add notes a measurement. Numbers of processes come in their order.
func (r *results) add(server, who string, n int, f figures) {
	s := r.of(server, who)
	if s == nil {
		s = &series{server: server, who: who}
		r.series = append(r.series, s)
	}
	s.points = append(s.points, point{n, f})
}

// of finds a series; nil is none.
func (r *results) of(server, who string) *series {
	for _, s := range r.series {
		if s.server == server && s.who == who {
			return s
		}
	}
	return nil
}

func (s *series) at(processes int) (figures, bool) {
	if s != nil {
		for _, p := range s.points {
			if p.processes == processes {
				return p.figures, true
			}
		}
	}
	return figures{}, false
}

// aims compares the run with what is aimed at; what was not measured has no aim.
func (r *results) aims() (all []page.Aim) {
	for _, s := range r.series {
		if strings.Contains(s.who, "slot") {
			all = append(all, s.flat()...)
			all = append(all, s.beside(r.of(s.server, laravelName))...)
		}
	}
	for _, s := range r.series {
		if f, there := s.at(16); there && s.server == "MariaDB" && strings.HasPrefix(s.who, "8 slots") {
			all = append(all, page.Aim{What: "MariaDB, 16 processes of " + s.who + ": jobs a second", Value: f.rate,
				Limit: 12_000})
		}
	}
	for _, l := range r.limits {
		all = append(all, l.beside(l)...)
		for _, single := range r.limits { // a loop that ends each job by itself
			if l.name == shipped && single.server == l.server && single.rows == 1 {
				all = append(all, l.beside(single)...)
			}
		}
	}
	return all
}

// flat are the aims on how little a fleet loses by its number of processes.
func (s *series) flat() []page.Aim {
	first, last := s.points[0], s.points[len(s.points)-1]
	if first.processes != 1 || len(s.points) == 1 {
		return nil
	}
	slowest, fastest := first.rate, first.rate
	for _, p := range s.points {
		slowest, fastest = min(slowest, p.rate), max(fastest, p.rate)
	}
	name := s.server + ", " + s.who + ": "
	return []page.Aim{
		{What: fmt.Sprintf("%sprocessor time a job, %d processes : 1", name, last.processes),
			Value: last.cost() / max(first.cost(), 1e-9), Limit: 1.7, AtMost: true},
		{What: name + "jobs a second, the slowest number of processes : the fastest",
			Value: slowest / max(fastest, 1e-9), Limit: 0.7},
	}
}

// beside is the aim beside Laravel's workers: the smallest ratio of those at all numbers
// of processes that both have.
func (s *series) beside(laravel *series) []page.Aim {
	least, at := 0.0, 0
	for _, p := range s.points {
		if theirs, there := laravel.at(p.processes); there && theirs.rate > 0 {
			if ratio := p.rate / theirs.rate; at == 0 || ratio < least {
				least, at = ratio, p.processes
			}
		}
	}
	if at == 0 {
		return nil
	}
	limit := 20.0
	if strings.Contains(s.who, "nothing ahead") {
		limit = 6
	}
	return []page.Aim{{What: fmt.Sprintf("%s, %s : Laravel, jobs a second, at every number of processes (least at %d)",
		s.server, s.who, at), Value: least, Limit: limit}}
}

// beside is the aim beside a bare loop.
func (l limit) beside(bare limit) []page.Aim {
	if bare.loop.rate <= 0 {
		return nil
	}
	return []page.Aim{{What: fmt.Sprintf("%s, %s : bare loop, %s a transaction", l.server, l.name, rows(bare.rows)),
		Value: l.ours.rate / bare.loop.rate, Limit: 0.8}}
}

func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
