package mailbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
)

// ErrEnd is the end of a [Feed].
var ErrEnd = errors.New("the stream has ended")

// GapError is a place in a feed whose next event is not kept any more.
type GapError struct {
	// Next is the place before the next event that is kept.
	Next uint64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("mailbox: events were dropped; continue from %d", e.Next)
}

// Event is one event of a dispatch.
type Event struct {
	// Seq names the event within its dispatch, for all processes. It grows: by one in what one execution sends, from 1 in the first one. When
	// the dispatch is executed again, the numbers continue far above, so that none of them was given before.
	Seq  uint64
	Type string
	Data []byte
}

// Events that the mailbox itself sends.
const (
	// EventFailed comes when an execution failed; Data is the error. A retry may follow.
	EventFailed = "mailbox_failed"
	// EventRefused comes when what a request asked for was refused, and its run stands as it was; Data is the error.
	EventRefused = "mailbox_refused"
	// EventSettled comes once, and last: the dispatch is terminal. Data is its status. Readers in several processes may see it under
	// different numbers.
	EventSettled = "mailbox_settled"
	// EventSkipped is in the place of an event that is too large to be shared between processes, or to be kept at all
	// (Config.Events.Bytes). Data is its type, or the beginning of that.
	EventSkipped = "mailbox_skipped"
)

// turnBits are the low bits of a number, which count the events of an execution. Its other bits are the fence of its claim.
const turnBits = 32

// maxSeq is the greatest number that an event may have, and that stores keep.
const maxSeq = math.MaxInt64 - 1

// beginsTurn reports whether an event is the first one of its execution, so that nothing is missing before it.
func beginsTurn(seq uint64) bool { return seq&(1<<turnBits-1) == 1 }

// Feed is the events of a dispatch, whichever processes execute it. It is safe for concurrent use, and
// needs no closing.
type Feed struct {
	box      *Mailbox
	dispatch string

	mu   sync.Mutex
	own  *stream // of the latest execution in this process that the Feed knows
	page []Event // the last ones that were read from the log
	sent uint64  // the number of the end in the log, if it was read
	end  uint64  // the number of the end as this Feed has returned it
}

// readBatches is how many batches a feed reads at once.
const readBatches = 8

// Attach returns the events of a dispatch, from any process that shares the store: those of executions of this process
// directly, and those of others as the store has them, see [store.Events]. It is [ErrNotFound] when there is no such dispatch.
// A store that shares none has those of this process, for a Feed that was attached while the dispatch was executed.
func (m *Mailbox) Attach(ctx context.Context, dispatch string) (*Feed, error) {
	if _, found, err := m.Dispatch(ctx, dispatch); err != nil || !found {
		if err == nil {
			err = wrap("dispatch", dispatch, ErrNotFound)
		}
		return nil, err
	}
	return m.feed(dispatch), nil
}

// feed attaches to a dispatch that is there.
func (m *Mailbox) feed(dispatch string) *Feed {
	f := &Feed{box: m, dispatch: dispatch}
	f.follow()
	return f
}

// Next returns the first event after the one with the number seq, 0 for the first, waiting for it if it has not come. It is a
// [GapError] when events between were dropped, since they were too many, or too old; and [ErrEnd] when there are no more. What
// was sent right before a crash may be missing without a word, but then the numbers begin a new turn. The
// end comes also when the process that knew of it is gone. A number beyond the last event is that of one who knows the rest: after it
// comes the end. When nothing is kept any more, since all is older than Config.Events.TTL, only the end comes. One that no event can have is
// [ErrInvalid]. Once the Mailbox is closed, what another process has not sent yet is [ErrShutdown].
func (f *Feed) Next(ctx context.Context, seq uint64) (Event, error) {
	if seq > maxSeq {
		return Event{}, wrap("events of dispatch", f.dispatch, fmt.Errorf("%w: no event has the number %d", ErrInvalid, seq))
	}
	for {
		e, err := f.poll(ctx, seq)
		if err != nil || e.Seq != 0 {
			return e, err
		}
	}
}

// poll waits for the next event, for a while if another process has it.
func (f *Feed) poll(ctx context.Context, seq uint64) (Event, error) {
	if s := f.source(seq); s != nil {
		e, err := s.next(ctx, seq)
		if e.Type == EventSettled {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.end = e.Seq
		}
		if !errors.Is(err, errOver) {
			return e, err
		}
	}
	return f.remote(ctx, seq)
}

// follow attaches to the execution that is under way in this process, if there is one.
func (f *Feed) follow() *stream {
	s := f.box.streamOf(f.dispatch)
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != nil {
		f.own = s
	}
	return f.own
}

// source is the stream of this process that has what comes after a number, or nil.
func (f *Feed) source(seq uint64) *stream {
	f.mu.Lock()
	s := f.own
	f.mu.Unlock()
	if s == nil || !s.has(seq) {
		s = f.follow()
	}
	if s != nil && (s.has(seq) || f.box.pump == nil) {
		return s
	}
	return nil
}

// Behind is how far a reader at seq is behind the execution, in bytes of events, if this process has it, and else 0.
func (f *Feed) Behind(seq uint64) int {
	if s := f.follow(); s != nil {
		return s.behind(seq)
	}
	return 0
}

// remote searches the event among what others share, for a while.
func (f *Feed) remote(ctx context.Context, seq uint64) (Event, error) {
	if e, ok := f.paged(seq); ok {
		return e, nil
	}
	d, found, err := f.box.Dispatch(ctx, f.dispatch)
	switch {
	case err != nil:
		return Event{}, err
	case !found:
		return Event{}, ErrEnd
	case d.Status.Terminal():
		return f.last(ctx, seq, d)
	case f.box.base.Err() != nil:
		return Event{}, wrap("events of dispatch", f.dispatch, ErrShutdown)
	case f.box.pump == nil:
		if !wait(ctx, f.box.cfg.Poll) {
			return Event{}, context.Cause(ctx)
		}
		return Event{}, nil
	}
	err = f.read(ctx, seq, seq, false)
	if e, ok := f.paged(seq); ok {
		return e, nil
	}
	return Event{}, err
}

// last reads the log of a dispatch that is terminal once more; then comes the end, which is made of the dispatch.
func (f *Feed) last(ctx context.Context, seq uint64, d Dispatch) (Event, error) {
	if f.box.pump != nil {
		if err := f.read(ctx, max(seq, 2)-2, seq, true); err != nil {
			return Event{}, err
		}
	}
	if e, ok := f.paged(seq); ok {
		return e, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end > 0 && seq >= f.end || f.box.pump != nil && f.hasEnd(seq) {
		return Event{}, ErrEnd
	}
	f.end = seq + 1
	return Event{Seq: f.end, Type: EventSettled, Data: []byte(d.Status)}, nil
}

// hasEnd reports whether a reader at seq has had the end, from this Feed or from another one, perhaps in another process. The end has
// the number after the last event, or the first one of a turn without events; no event of the log has it. The caller holds the lock.
func (f *Feed) hasEnd(seq uint64) bool {
	follows := beginsTurn(seq) || seq > 0 && seq == f.sent
	for _, e := range f.page {
		if e.Seq == seq {
			return false
		}
		follows = follows || e.Seq == seq-1
	}
	return follows
}

// read reads a page of the log, from after a number on. A reader that is at seq must not miss what was dropped.
func (f *Feed) read(ctx context.Context, after, seq uint64, atOnce bool) error {
	patience := f.box.cfg.Poll
	if atOnce {
		patience = 0
	}
	list, err := f.box.pump.log.ReadEvents(ctx, f.dispatch, after, readBatches, patience)
	if err != nil {
		return wrap("events of dispatch", f.dispatch, err)
	}
	var page []Event
	var sent uint64
	for _, b := range list {
		next := seq
		if len(page) > 0 {
			next = page[len(page)-1].Seq
		}
		if b.First > next+1 && !beginsTurn(b.First) {
			if len(page) == 0 {
				return &GapError{Next: b.First - 1}
			}
			break // the gap comes when the reader is there
		}
		events, err := decodeEvents(b, after)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Type == EventSettled { // it only wakes readers: what they get is made of the dispatch
				sent = e.Seq
				continue
			}
			page = append(page, e)
		}
	}
	f.mu.Lock()
	f.page, f.sent = page, sent
	f.mu.Unlock()
	if !atOnce && sent > 0 && len(page) == 0 {
		wait(ctx, patience) // the dispatch was queued again, and nothing has come since
	}
	return nil
}

// paged is the event after a number, if it has been read already.
func (f *Feed) paged(seq uint64) (Event, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range f.page {
		if e.Seq > seq && (i > 0 && f.page[i-1].Seq <= seq || e.Seq == seq+1 || beginsTurn(e.Seq)) {
			return e, true
		}
	}
	return Event{}, false
}
