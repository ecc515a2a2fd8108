package php

import (
	"cmp"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// maxLive is how many lines of a job one heartbeat takes: the others come with the next
// ones, or with the job's end.
const maxLive = 200

// Pools are the pools of a program. They implement jobs.PHPProcesses.
type Pools []*Pool

// Processes implements jobs.PHPProcesses. It waits for nothing that a process or the
// Source may keep.
func (list Pools) Processes() []jobs.PHPProcess {
	var found []jobs.PHPProcess
	for _, p := range list {
		for _, x := range p.living() {
			found = append(found, x.shown())
		}
	}
	slices.SortFunc(found, func(a, b jobs.PHPProcess) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), a.StartedAt.Compare(b.StartedAt), a.PID-b.PID)
	})
	return found
}

// Return implements jobs.PHPProcesses: lines of jobs that still run come with the next
// heartbeat, or with their end.
func (list Pools) Return(unstored []jobs.PHPProcess) {
	for _, p := range list {
		for _, x := range p.living() {
			for i := range unstored {
				if s := &unstored[i]; s.PID == x.cmd.Process.Pid && s.Job != nil {
					x.putBack(s.Job)
				}
			}
		}
	}
}

// shown is what the process does now.
func (x *process) shown() jobs.PHPProcess {
	pid := x.cmd.Process.Pid
	s := jobs.PHPProcess{Queue: x.c.Queue, PID: pid, StartedAt: x.startedAt, MemoryBytes: resident(pid)}
	if x.show(&s); s.Job != nil {
		x.redact(s.Job.Lines)
	}
	return s
}

func (x *process) show(s *jobs.PHPProcess) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s.Done = int64(x.ran)
	if x.job == nil {
		return
	}
	j := &x.job.Job
	s.Job = &jobs.RunningJob{ID: j.ID, UUID: j.UUID, Type: j.Type, Queue: j.Queue, Attempt: j.Attempt,
		Since: x.began, Progress: x.progress, Lines: x.output.soFar(maxLive)}
	if !x.due.IsZero() {
		s.Deadline = x.due.Add(-killAfter)
	}
}

// putBack puts lines back, if the job that printed them is still in hand.
func (x *process) putBack(r *jobs.RunningJob) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.job != nil && x.job.Job.ID == r.ID && x.job.Job.Attempt == r.Attempt && x.began.Equal(r.Since) {
		x.output.putBack(r.Lines)
	}
}

// redact takes secrets out of lines.
func (x *process) redact(lines []jobs.LogLine) {
	for i := range lines {
		lines[i].Text = x.c.Redact(lines[i].Text)
	}
}

// soFar takes up to n whole lines that came since the last call.
func (o *output) soFar(n int) []jobs.LogLine {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.marked { // they are the next job's; those of the one that has ended come with its end
		return nil
	}
	n = min(n, len(o.lines))
	lines := slices.Clone(o.lines[:n])
	o.lines, o.taken = o.lines[n:], o.taken+n
	return lines
}

// putBack puts lines of soFar back before the others.
func (o *output) putBack(lines []jobs.LogLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.marked {
		o.ended = slices.Concat(lines, o.ended)
		return
	}
	o.lines, o.taken = slices.Concat(lines, o.lines), o.taken-len(lines)
}
