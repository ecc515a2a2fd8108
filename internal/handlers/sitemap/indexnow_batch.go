package sitemap

import (
	"context"
	"errors"
	"fmt"
)

// batch gathers addresses into calls.
type batch struct {
	handler    *Handler
	endpoint   *endpoint
	submission *Submission
	size       int
	list       []changedURL
	hashes     map[int64]bool

	accepted int          // addresses
	refused  []changedURL // each of which was refused alone
	splits   int          // calls that were made only to find the refused ones
	refusal  error        // the last one
}

// maxSplits bounds how many calls a run makes to find what is refused: enough
// for two addresses among 10,000.
const maxSplits = 60

func (b *batch) add(ctx context.Context, s changedURL) error {
	if b.hashes == nil {
		b.hashes = map[int64]bool{}
	}
	if b.hashes[s.hash] {
		return nil // two rows of the CMS have one address
	}
	b.hashes[s.hash] = true
	if b.list = append(b.list, s); len(b.list) < b.size {
		return nil
	}
	return b.flush(ctx)
}

// flush submits what is gathered and notes it as accepted.
func (b *batch) flush(ctx context.Context) error {
	list := b.list
	b.list, b.hashes = nil, nil
	if len(list) == 0 {
		return nil
	}
	return b.send(ctx, list)
}

// send submits a list. Where it is refused for its addresses, its halves are
// submitted, so that one address does not hold up the others.
func (b *batch) send(ctx context.Context, list []changedURL) error {
	locs := make([]string, len(list))
	for i, s := range list {
		locs[i] = s.loc
	}
	before := len(b.submission.Refusals)
	err := b.endpoint.send(ctx, locs, b.submission)
	switch {
	case err == nil:
		b.accepted += len(list)
		return b.handler.note(ctx, toIndexNow, list)
	case !errors.As(err, new(addressError)):
		return err
	}
	b.refusal = err
	if len(list) == 1 {
		b.refused = append(b.refused, list[0])
		return nil
	}
	b.submission.Refusals = b.submission.Refusals[:min(before, len(b.submission.Refusals))] // its parts say more
	if b.splits += 2; b.splits > maxSplits || b.hopeless() {
		return err
	}
	if err := b.send(ctx, list[:len(list)/2]); err != nil {
		return err
	}
	return b.send(ctx, list[len(list)/2:])
}

// hopeless says that single addresses were refused and nothing was accepted:
// the reason is not one address, but the host or the key.
func (b *batch) hopeless() bool { return b.accepted == 0 && len(b.refused) > 1 }

// finish submits the rest and settles what was refused. Where other addresses
// were accepted, a refused one is not submitted again until it changes.
func (b *batch) finish(ctx context.Context, err error) error {
	if err == nil {
		err = b.flush(ctx)
	}
	if b.accepted == 0 || len(b.refused) == 0 {
		if err == nil && len(b.refused) > 0 {
			err = b.refusal
		}
		return err
	}
	for _, s := range b.refused[:min(len(b.refused), maxSkipped)] {
		b.submission.Refusals = append(b.submission.Refusals,
			fmt.Sprintf("%s was refused alone; it is not submitted again until it changes", s.loc))
	}
	b.submission.Refused = len(b.refused)
	return errors.Join(err, b.handler.note(ctx, toIndexNow, b.refused))
}
