package natsstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

var _ mailbox.EventLog = (*Store)(nil)

// Events are in a stream of their own, a message for each batch, which the servers drop after eventAge, or later if somebody wants that. A
// dispatch has a subject, and no more than mostBatches there. A process remembers of so many dispatches what it
// wrote or read.
const (
	eventAge    = mailbox.DefaultEventTTL
	mostBatches = 4096
	mostTails   = 4096
)

// Headers of a batch.
const (
	fenceHeader = "Mortise-Fence"
	firstHeader = "Mortise-First"
	lastHeader  = "Mortise-Last"
)

// eventLog is what a process knows of the stream of events.
type eventLog struct {
	mu     sync.Mutex
	stream *jet.Stream // nil until it is needed
	// tails are the last batches of dispatches to which this process adds, next the places in the stream from which
	// readers go on.
	tails map[string]*tail
	next  map[place]uint64
	// age is how long the servers keep events at least, as far as is known.
	age time.Duration
}

// tail is the last batch of a dispatch, without its data, and where it is. Own are those that were added here.
type tail struct {
	mailbox.EventBatch

	seq uint64
	own []ownBatch
}

type ownBatch struct{ last, seq uint64 }

// place is that of a reader.
type place struct {
	dispatch string
	after    uint64
}

func (s *Store) eventSubject(dispatch string) string {
	return s.eventStreamName() + "." + token(dispatch)
}

func (s *Store) eventStreamName() string { return s.cfg.Name + "-events" }

// eventStream opens the stream, and makes it if it is not there. Nobody waits for a lock meanwhile.
func (s *Store) eventStream(ctx context.Context) (*jet.Stream, error) {
	e := &s.events
	e.mu.Lock()
	stream := e.stream
	e.mu.Unlock()
	if stream != nil {
		return stream, nil
	}
	name := s.eventStreamName()
	stream, err := s.link.Open(ctx, "the latest events", jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".*"}, MaxMsgsPerSubject: mostBatches, MaxAge: eventAge,
	})
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stream = stream
	return stream, nil
}

// shared says whether there is a stream of events.
func (s *Store) shared(ctx context.Context) (bool, error) {
	err := s.ask(ctx, func(ctx context.Context) error {
		_, err := s.link.JS.Stream(ctx, s.eventStreamName())
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}

// AppendEvents implements mailbox.EventLog.
func (s *Store) AppendEvents(ctx context.Context, list ...mailbox.EventBatch) (refused []string, err error) {
	stream, err := s.eventStream(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		no, err := s.appendBatch(ctx, stream, &list[i])
		if errors.Is(err, errDamaged) { // which no other try mends: it must not keep the others out
			s.cfg.Logger.WarnContext(ctx, "natsstore_events_damaged", "dispatch", list[i].Stream, "error", err)
			no, err = true, nil
		}
		if err != nil {
			return nil, fmt.Errorf("natsstore: events of dispatch %.80q: %w", list[i].Stream, err)
		}
		if no {
			refused = append(refused, list[i].Stream)
		}
	}
	return refused, nil
}

// errDamaged is a batch that none of us wrote.
var errDamaged = errors.New("a batch is damaged: it has no numbers")

// appendBatch adds a batch behind the last one, again if somebody else was first.
func (s *Store) appendBatch(ctx context.Context, stream *jet.Stream, b *mailbox.EventBatch) (refused bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	for n := 0; ; n++ {
		refused, err = s.tryBatch(ctx, stream, b)
		if err == nil {
			return refused, nil
		}
		s.events.forget(b.Stream) // what is there may be another one
		if !overtaken(err) && !transient(err) {
			return false, err
		}
		if late := pause(ctx, n); late != nil {
			return false, errors.Join(late, err)
		}
	}
}

func (s *Store) tryBatch(ctx context.Context, stream *jet.Stream, b *mailbox.EventBatch) (refused bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Wait)
	defer cancel()
	t := s.events.tail(b.Stream)
	if t == nil {
		if t, err = s.lastBatch(ctx, stream, b.Stream); err != nil {
			return false, err
		}
	}
	add, refused := b.Follows(t.EventBatch)
	if !add {
		return refused, nil
	}
	msg := nats.NewMsg(s.eventSubject(b.Stream))
	msg.Header.Set(fenceHeader, strconv.FormatUint(b.Fence, 10))
	msg.Header.Set(firstHeader, strconv.FormatUint(b.First, 10))
	msg.Header.Set(lastHeader, strconv.FormatUint(b.Last, 10))
	msg.Data = b.Data
	ack, err := s.link.JS.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(t.seq), jetstream.WithRetryAttempts(0))
	if err != nil {
		return false, err
	}
	next := &tail{EventBatch: *b, seq: ack.Sequence, own: append(slices.Clip(t.own), ownBatch{b.Last, ack.Sequence})}
	next.Data = nil
	cut := 0
	for cut < len(next.own) && next.own[cut].last < b.Keep {
		cut++
	}
	next.own = next.own[cut:]
	s.events.keep(b.Stream, next)
	if cut == 0 {
		return false, nil
	}
	err = stream.Purge(ctx, jetstream.WithPurgeSubject(msg.Subject), jetstream.WithPurgeSequence(next.own[0].seq))
	if err != nil {
		s.cfg.Logger.DebugContext(ctx, "natsstore_events_not_dropped", "stream", s.cfg.Name, "error", err) // the servers drop them later
	}
	return false, nil
}

func (e *eventLog) tail(dispatch string) *tail {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tails[dispatch]
}

func (e *eventLog) keep(dispatch string, t *tail) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.tails) >= mostTails {
		clear(e.tails)
	}
	e.tails[dispatch] = t
}

func (e *eventLog) forget(dispatch string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tails, dispatch)
}

// lastBatch reads the last batch of a dispatch, a zero one if there is none.
func (s *Store) lastBatch(ctx context.Context, stream *jet.Stream, dispatch string) (*tail, error) {
	msg, err := stream.GetLastMsgForSubject(ctx, s.eventSubject(dispatch))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return &tail{}, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := batchOf(dispatch, msg)
	return &tail{EventBatch: b, seq: msg.Sequence}, err
}

// batchOf reads a batch.
func batchOf(dispatch string, msg *jetstream.RawStreamMsg) (b mailbox.EventBatch, err error) {
	b = mailbox.EventBatch{Stream: dispatch, At: msg.Time.UTC(), Data: msg.Data}
	for header, to := range map[string]*uint64{fenceHeader: &b.Fence, firstHeader: &b.First, lastHeader: &b.Last} {
		n, bad := strconv.ParseUint(msg.Header.Get(header), 10, 64)
		if bad != nil {
			return b, errDamaged
		}
		*to = n
	}
	return b, nil
}

// ReadEvents implements mailbox.EventLog.
func (s *Store) ReadEvents(ctx context.Context, dispatch string, after uint64, limit int, wait time.Duration) (list []mailbox.EventBatch, err error) {
	stream, err := s.eventStream(ctx)
	if err == nil {
		list, err = s.batches(ctx, stream, dispatch, after, limit)
	}
	if err == nil && len(list) == 0 && wait > 0 {
		list, err = s.awaitBatches(ctx, stream, dispatch, after, limit, wait)
	}
	if err != nil {
		return nil, fmt.Errorf("natsstore: events of dispatch %.80q: %w", dispatch, err)
	}
	return list, nil
}

// A reader that waits looks again so long after it heard of something, and then ever more seldom.
const (
	lookSoon = 5 * time.Millisecond
	lookLate = 2 * time.Second
)

// awaitBatches hears what is sent to the subject of a dispatch, and looks then. It looks again in any case: who hears
// of a batch may ask before it is stored, and what is heard may be lost, as when a connection is made again.
func (s *Store) awaitBatches(ctx context.Context, stream *jet.Stream, dispatch string, after uint64, limit int, wait time.Duration) ([]mailbox.EventBatch, error) {
	sub, err := s.nc.SubscribeSync(s.eventSubject(dispatch))
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it may have ended with the connection
	if err := s.ask(ctx, s.nc.FlushWithContext); err != nil {
		return nil, err
	}
	until, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for late := lookSoon; ; late = min(2*late, lookLate) {
		list, err := s.batches(ctx, stream, dispatch, after, limit)
		if err != nil || len(list) > 0 {
			return list, err
		}
		heard, err := hears(until, sub, late)
		if heard {
			late = lookSoon / 2
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case until.Err() != nil:
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
}

// hears waits for a message, not for longer than until and late allow.
func hears(until context.Context, sub *nats.Subscription, late time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(until, late)
	defer cancel()
	_, err := sub.NextMsgWithContext(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return false, nil
	case errors.Is(err, nats.ErrSlowConsumer): // which lost some
		return true, nil
	}
	return err == nil, err
}

// batches reads what comes after a number, one request for each batch. A reader that goes on begins where
// it was.
func (s *Store) batches(ctx context.Context, stream *jet.Stream, dispatch string, after uint64, limit int) (list []mailbox.EventBatch, err error) {
	at, known := s.events.from(place{dispatch, after})
	if !known {
		at = 1
		var last *tail
		err := s.ask(ctx, func(ctx context.Context) (err error) {
			last, err = s.lastBatch(ctx, stream, dispatch)
			return err
		})
		if err != nil || last.Last <= after {
			return nil, err
		}
	}
	for len(list) < limit {
		var msg *jetstream.RawStreamMsg
		err := s.ask(ctx, func(ctx context.Context) (err error) {
			msg, err = stream.GetMsg(ctx, at, jetstream.WithGetMsgSubject(s.eventSubject(dispatch)))
			return err
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		b, err := batchOf(dispatch, msg)
		if err != nil {
			return nil, err
		}
		at = msg.Sequence + 1
		if b.Last > after {
			list = append(list, b)
			s.events.goOn(place{dispatch, b.Last}, at)
		}
	}
	return list, nil
}

func (e *eventLog) from(p place) (seq uint64, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	seq, known = e.next[p]
	return seq, known
}

func (e *eventLog) goOn(p place, seq uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.next) >= mostTails {
		clear(e.next)
	}
	e.next[p] = seq
}

// forgetEvents drops the events of dispatches that are gone.
func (s *Store) forgetEvents(ctx context.Context, keys []birthKey) {
	if err := s.dropEvents(ctx, keys); err != nil {
		s.cfg.Logger.WarnContext(ctx, "natsstore_events_not_dropped", "stream", s.cfg.Name, "error", err)
	}
}

func (s *Store) dropEvents(ctx context.Context, keys []birthKey) error {
	there, err := s.shared(ctx)
	if err != nil || !there {
		return err
	}
	stream, err := s.eventStream(ctx)
	for _, k := range keys {
		if err != nil {
			return err
		}
		if k.kind == mailbox.KindDispatch {
			s.events.forget(k.id)
			err = stream.Purge(ctx, jetstream.WithPurgeSubject(s.eventSubject(k.id)))
		}
	}
	return err
}

// DropEvents implements mailbox.EventLog. Dropping a dispatch has done that already.
func (*Store) DropEvents(context.Context, ...string) error { return nil }
