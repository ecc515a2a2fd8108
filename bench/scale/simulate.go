package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// curve is what questions cost with more and more claimers at once: points, in
// that order, for whole batches; one for single rows and a single claimer.
type curve struct {
	points []measured
	one    measured
}

// at reads the curve where so many are at work, between its points by a straight
// line and beyond its ends as at its ends.
func (c curve) at(working int) (claim, end time.Duration, rows float64) {
	for i, m := range c.points {
		if working > m.claimers && i < len(c.points)-1 {
			continue
		}
		if i == 0 || working >= m.claimers {
			return m.claim, m.end, m.rows
		}
		below := c.points[i-1]
		share := float64(working-below.claimers) / float64(m.claimers-below.claimers)
		between := func(a, b time.Duration) time.Duration { return a + time.Duration(share*float64(b-a)) }
		return between(below.claim, m.claim), between(below.end, m.end), below.rows + share*(m.rows-below.rows)
	}
	return 0, 0, 0
}

// part is what of a whole batch's cost n rows cost: a fixed share, and the rest
// by the row.
func part(one, whole time.Duration, n int) float64 {
	single := min(1, float64(one)/float64(whole))
	return single + (1-single)*float64(n-1)/(batch-1)
}

// fleet is what is simulated: processes of so many slots that run jobs of half to
// one and a half times a length, on a server of so many cores.
type fleet struct {
	workers, slots, cores int
	length                time.Duration
	costs                 curve
}

// most is how many claims the server works on at a time.
const most = 64

// outcome of a simulation.
type outcome struct {
	rate         float64 // jobs a second
	busy         float64 // the share of the slots' time in which they ran jobs
	median, most time.Duration
}

// simulate runs a fleet for a while, event by event. A worker with free slots
// asks for them all at once and has one question open at a time, as the real one
// does; ends that fall due while one is written share the next write. The
// server's cores serve what is in work in equal shares of a first come, first
// served line; a question costs what the curve says for the number at work.
func simulate(f fleet, length time.Duration) outcome {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same each time
	s := &simulation{fleet: f, team: make([]sim, f.workers), end: length, random: random}
	for i := range s.team {
		s.team[i] = sim{free: f.slots}
		s.at(time.Duration(i)*time.Second/time.Duration(f.workers), i, wakes) // they did not all start at once
	}
	for len(s.events) > 0 {
		e := heap.Pop(&s.events).(event)
		if e.at > length {
			break
		}
		s.now = e.at
		s.happen(e)
	}
	o := outcome{rate: float64(s.jobs) / length.Seconds(),
		busy: s.ran.Seconds() / (length.Seconds() * float64(f.workers*f.slots))}
	if slices.Sort(s.waits); len(s.waits) > 0 {
		o.median, o.most = s.waits[len(s.waits)/2], s.waits[len(s.waits)*99/100]
	}
	return o
}

// sim is one worker.
type sim struct {
	free, ended int           // slots without a job; jobs whose end is not written
	asking      bool          // its one question to the server is open
	writing     int           // ends in that question; 0 is a claim
	since       time.Duration // it has had a free slot, and something to ask for
}

// what happens to a worker.
type what int

const (
	wakes    what = iota // it starts
	answered             // the server answers
	finishes             // a job ends
)

type event struct {
	at     time.Duration
	worker int
	what   what
	rows   int
}

type simulation struct {
	fleet
	team    []sim
	events  events
	now     time.Duration
	end     time.Duration
	line    []int // workers whose question waits for the server
	working int
	jobs    int
	ran     time.Duration
	waits   []time.Duration
	random  *rand.Rand
}

func (s *simulation) at(when time.Duration, worker int, w what) {
	heap.Push(&s.events, event{at: when, worker: worker, what: w})
}

func (s *simulation) happen(e event) {
	w := &s.team[e.worker]
	switch e.what {
	case wakes:
		w.since = s.now
	case finishes:
		if w.ended++; w.free == 0 && w.ended == 1 {
			w.since = s.now
		}
	case answered:
		s.working--
		w.asking = false
		if w.writing > 0 {
			s.jobs += w.writing
			w.free += w.writing
			w.writing = 0
		} else {
			s.start(e.worker, min(w.free, e.rows))
		}
		s.serve()
	}
	s.ask(e.worker)
}

// start lets jobs run in free slots.
func (s *simulation) start(worker, rows int) {
	w := &s.team[worker]
	if rows > 0 {
		s.waits = append(s.waits, s.now-w.since)
		w.since = s.now
	}
	w.free -= rows
	for range rows {
		length := s.length/2 + time.Duration(s.random.Int64N(int64(s.length)))
		s.ran += min(length, s.end-s.now)
		s.at(s.now+length, worker, finishes)
	}
}

// ask opens the worker's question where it has one and none is open.
func (s *simulation) ask(worker int) {
	w := &s.team[worker]
	if w.asking || w.ended == 0 && w.free == 0 {
		return
	}
	w.asking = true
	if w.writing = w.ended; w.ended > 0 {
		w.ended = 0
	}
	s.line = append(s.line, worker)
	s.serve()
}

// serve takes queries from the queue while the server has capacity.
func (s *simulation) serve() {
	for len(s.line) > 0 && s.working < min(most, max(s.cores, 1)*4) {
		worker := s.line[0]
		s.line = s.line[1:]
		s.working++
		claim, end, rows := s.costs.at(s.working)
		w, whole := &s.team[worker], s.costs.points[0]
		cost := time.Duration(float64(claim) * part(s.costs.one.claim, whole.claim, min(w.free, batch)))
		if w.writing > 0 {
			cost = time.Duration(float64(end) * part(s.costs.one.end, whole.end, w.writing))
		}
		// With more at work than cores each gets its share of them.
		cost = cost * time.Duration(max(s.working, s.cores)) / time.Duration(s.cores)
		heap.Push(&s.events, event{at: s.now + cost, worker: worker, what: answered, rows: int(rows + 0.5)})
	}
}

// events are a heap by time.
type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, k int) bool { return e[i].at < e[k].at }
func (e events) Swap(i, k int)      { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
