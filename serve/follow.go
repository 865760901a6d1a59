package serve

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
)

// How often a stream looks whether its run has continued, in another process: soon at first, and
// then seldom.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = time.Second
)

// errSlow ends the stream of a reader that is too far behind.
var errSlow = errors.New("the reader is too slow")

// follower reads the events of a run, over all its dispatches.
type follower struct {
	s           *Server
	run, thread string
	at          position
	// caught is set once the reader has had the newest event.
	caught bool
	// last is the mailbox's name of the newest event of the dispatch at which the reader is, empty if it
	// came before this follower.
	last string
	// send sends an event, idle is called when there is none for a while.
	send func(frame) error
	idle func() error
}

// follow sends events until the run has settled.
func (f *follower) follow(ctx context.Context) error {
	var seen mailbox.Run // as it was when nothing was to come before it changes
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		run, found, err := f.s.box().Run(ctx, f.run)
		if err != nil || !found {
			return cmp.Or(err, mailbox.ErrNotFound)
		}
		before, over := f.at, true
		if run.Ref() != seen.Ref() || !run.UpdatedAt.Equal(seen.UpdatedAt) {
			if over, err = f.round(ctx, run); err != nil {
				return err
			}
		}
		if over {
			seen = run
		}
		switch {
		case over && run.Status == mailbox.RunDone:
			f.at.event = ended
			return f.send(settledFrame(run, f.place("")))
		case f.at != before:
			poll = firstPoll
		default:
			if err := f.wait(ctx, poll); err != nil {
				return err
			}
		}
	}
}

// round sends the events of the dispatches that a run has. It reports whether they were over when
// it began. A run that was done before that has no others.
func (f *follower) round(ctx context.Context, run mailbox.Run) (over bool, err error) {
	list, err := f.s.dispatches(ctx, run)
	if err != nil {
		return false, err
	}
	over = true
	for i := range list {
		if err := f.dispatch(ctx, &list[i]); err != nil {
			return false, err
		}
		over = over && list[i].Status.Terminal()
	}
	return over, nil
}

// wait waits for a change of the run, and keeps the stream alive.
func (f *follower) wait(ctx context.Context, poll time.Duration) error {
	f.s.changes.wait(ctx, f.thread, poll)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return f.idle()
}

func (f *follower) place(dispatch string) place {
	return place{run: f.run, thread: f.thread, dispatch: dispatch, id: f.at}
}

// dispatch sends the events of one dispatch, from the position on, until it is terminal.
func (f *follower) dispatch(ctx context.Context, d *mailbox.Dispatch) error {
	switch {
	case d.Seq < f.at.dispatch, d.Seq == f.at.dispatch && f.at.event == ended:
		return nil
	case d.Seq > f.at.dispatch:
		f.at = position{dispatch: d.Seq}
	}
	f.last = ""
	feed, err := f.s.box().Attach(ctx, d.ID)
	if errors.Is(err, mailbox.ErrNotFound) {
		return nil // it was purged meanwhile
	}
	if err != nil {
		return err
	}
	for {
		more, err := f.next(ctx, feed, d)
		if err != nil || !more {
			return err
		}
		if behind := feed.Behind(f.at.event); behind == 0 {
			f.caught = true
		} else if limit := f.s.cfg.Limits.SlowBytes; f.caught && limit > 0 && behind > limit {
			return errSlow
		}
	}
}

// next sends the next event of a dispatch, if there are more.
func (f *follower) next(ctx context.Context, feed *mailbox.Feed, d *mailbox.Dispatch) (more bool, err error) {
	patience, cancel := context.WithTimeout(ctx, f.s.cfg.Limits.Heartbeat)
	e, err := feed.Next(patience, f.at.event)
	late := patience.Err() != nil
	cancel()
	var gap *mailbox.GapError
	switch {
	case errors.Is(err, mailbox.ErrEnd):
		return false, nil
	case errors.As(err, &gap):
		return true, f.gap(d, gap.Next)
	case err != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil && late:
		return true, f.idle()
	case err != nil:
		return false, err
	}
	if e.Type == mailbox.EventSettled {
		return false, f.ended(ctx, feed, d.ID, e.Seq)
	}
	f.at.event, f.last = e.Seq, e.Type
	out, ok := frameOf(e, f.place(d.ID))
	if !ok {
		return true, nil
	}
	if out.name == waitingName {
		untilStored(ctx, feed, e.Seq)
	}
	return true, f.send(out)
}

// storing is how long a run that waits is given to be stored as such before its event is sent.
const storing = 2 * time.Second

// untilStored waits until the execution whose last event this is has been settled: to a client that is told that a run waits, the
// next message is the answer, and not one that interrupts the run.
func untilStored(ctx context.Context, feed *mailbox.Feed, seq uint64) {
	ctx, cancel := context.WithTimeout(ctx, storing)
	defer cancel()
	_, _ = feed.Next(ctx, seq) // the end of the feed, or an error that the next call has, too
}

// ended sends what is missing at the end of a dispatch: events are shared some time after they were sent, and the
// process may have died before. Where a run stands is in the store.
func (f *follower) ended(ctx context.Context, feed *mailbox.Feed, id string, end uint64) error {
	d, found, err := f.s.box().Dispatch(ctx, id)
	if err != nil || !found || d.Termination == agentrun.Duplicate {
		return err
	}
	if f.at.event == 0 {
		if attempts(&d) == 0 {
			return f.refused(&d)
		}
		return f.gap(&d, 0) // an execution sends events, and none is kept
	}
	if f.last == "" {
		if e, err := feed.Next(ctx, f.at.event-1); err == nil && e.Seq == f.at.event {
			f.last = e.Type
		}
	}
	switch f.last {
	case "", string(agent.EventRunFinish), mailbox.EventRefused, mailbox.EventFailed, mailbox.EventSettled: // the last: none is kept
		return nil
	}
	run, _, err := f.s.box().Run(ctx, f.run)
	if err != nil || run.Dispatch != id || d.Status != mailbox.Acked {
		return err
	}
	r, err := f.s.record(ctx, run)
	if err != nil {
		return err
	}
	f.at.event = end
	return f.send(finishFrame(run, r, f.place(id)))
}

// refused sends the event of decisions for a run that had ended: they were not executed.
func (f *follower) refused(d *mailbox.Dispatch) error {
	if d.Status != mailbox.Acked || d.LastError == "" {
		return nil
	}
	f.at.event = 1
	out, _ := frameOf(mailbox.Event{Type: mailbox.EventRefused, Data: []byte(d.LastError)}, f.place(d.ID))
	return f.send(out)
}

func (f *follower) gap(d *mailbox.Dispatch, next uint64) error {
	f.at.event = next
	return f.send(gapFrame(f.place(d.ID), messagesPath(f.thread)))
}

// pageSize is how many objects are read from the store at a time.
const pageSize = 500

// dispatches are those of a run, oldest first, as far as they are kept.
func (s *Server) dispatches(ctx context.Context, run mailbox.Run) (out []mailbox.Dispatch, err error) {
	query := mailbox.DispatchQuery{Thread: run.Thread, Limit: pageSize}
	for {
		page, err := s.box().Dispatches(ctx, query)
		if err != nil {
			return nil, err //nolint:wrapcheck // clients do not see it
		}
		for i := range page {
			if page[i].RunID == run.ID {
				out = append(out, page[i])
			}
		}
		if len(page) < pageSize {
			break
		}
		query.After = page[len(page)-1]
	}
	slices.SortFunc(out, func(a, b mailbox.Dispatch) int { return cmp.Compare(a.Seq, b.Seq) })
	return out, nil
}
