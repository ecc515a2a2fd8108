package sqlstore

import (
	"context"
	"fmt"
)

// How many equal jobs one run stands for at most, and how many rows behind the
// first are looked at to find them.
const (
	maxTwins   = 2000
	twinWindow = 5000
)

// addTwins finds waiting due jobs that are equal to leader.
func (s *Store) addTwins(ctx context.Context, queue string, leader *candidate) error {
	have := map[int64]bool{leader.id: true}
	for _, t := range leader.twins {
		have[t.id] = true
	}
	l := &lane{queue: queue, priority: leader.priority}
	from := position{leader.at, leader.id}
	if leader.rescued { // it stands anywhere in the order
		from = position{}
	}
	end, err := s.window(ctx, l, from)
	if err != nil {
		return err
	}
	named, args := s.t.shape().payload+" LIKE ?", []any{"%" + kindPattern(leader.job.Kind) + "%"}
	if s.t.kind() == Extended {
		named, args = "(name = ? OR "+named+")", append([]any{leader.job.Kind}, args...)
	}
	look := s.inLane(l, from, end, s.t.waiting()+" AND "+named, maxTwins)
	look.args = append(look.args, args...)
	found, _, err := s.read(ctx, s.db, look)
	if err != nil {
		return err
	}
	work := leader.sameWork()
	for _, x := range found {
		if !have[x.id] && len(leader.twins) < maxTwins && s.ours(queue, x) && x.fault == nil && x.sameWork() == work {
			leader.twins = append(leader.twins, x)
		}
	}
	return nil
}

// kindPattern is the kind without what a LIKE or a JSON writer may spell
// otherwise.
func kindPattern(kind string) string {
	out := []rune(kind)
	for i, r := range out {
		if r == '%' || r == '\\' || r == '/' || r > 126 {
			out[i] = '_'
		}
	}
	return string(out)
}

// window is the position twinWindow rows behind from; zero is the end.
func (s *Store) window(ctx context.Context, l *lane, from position) (position, error) {
	a, args := s.after(from)
	t := s.t.shape()
	at := "''"
	if s.byTime() {
		at = t.due.text()
	}
	var p position
	_, err := s.one(ctx, s.db, []any{&p.at, &p.id}, "SELECT "+at+", id FROM "+t.name+s.hint()+" WHERE queue = ?"+s.t.class(l.priority)+a+
		" AND "+s.t.waiting()+s.order()+fmt.Sprintf(" LIMIT 1 OFFSET %d", twinWindow), append([]any{l.queue}, args...)...)
	return p, err
}
