package natsstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
)

type decider = func(mailbox.State) (mailbox.Change, error)

// errAgain asks for another try: somebody else was first. errStale asks for one that reads: what was guessed may be wrong, and
// nothing that is written would show it.
var (
	errAgain = errors.New("natsstore: somebody else was first")
	errStale = errors.New("natsstore: what was guessed may be wrong")
)

// Update implements mailbox.Store.
func (s *Store) Update(ctx context.Context, id string, need mailbox.Need, decide decider) error {
	u := &update{s: s, id: id, sure: s.stream.Alone(), reads: need.Lenient, lenient: need.Lenient}
	return u.run(ctx, func(ctx context.Context, t *thread) error { return u.try(ctx, t, need, decide) })
}

// maxGone is how often records may vanish under an update before they count as lost.
const maxGone = 20

// update is an Update under way.
type update struct {
	s  *Store
	id string
	// writes are the heads that may have been written.
	writes []string
	// overtaken says that a server told so of the latest write: lost is what it needed, base the write before it, and at the
	// number of the head that has that one.
	overtaken bool
	lost      []ref
	base      string
	at        uint64
	// births are those that were made for this update.
	births []ref
	// began is when the try under way began.
	began time.Time
	// reads says that the thread is to be read, not guessed; doubts that what is read has to be the latest for certain, and
	// sure that it is.
	reads, doubts, sure bool
	// lenient says that a damaged thread is read as far as it can be.
	lenient bool
}

// run reads the thread and tries, until it is certain what came of it.
func (u *update) run(ctx context.Context, try func(context.Context, *thread) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, u.s.cfg.Patience, errPatience)
	defer cancel()
	leave, err := u.s.turns.take(ctx, u.id)
	if err != nil {
		return fmt.Errorf("natsstore: thread %.80q: %w", u.id, err)
	}
	defer leave()
	gone := 0
	for n := 0; ; n++ {
		err := u.once(ctx, try)
		refused, isRefusal := errors.AsType[*refusal](err)
		switch {
		case isRefusal && u.sure:
			return u.end(refused.err)
		case isRefusal:
			u.doubts = true
			continue
		case errors.Is(err, errStale):
			continue
		}
		if errors.Is(err, errGone) {
			gone++
		}
		again := errors.Is(err, errGone) && gone <= maxGone || errors.Is(err, errAgain) || transient(err)
		if err == nil || !again {
			return u.end(err)
		}
		if late := pause(ctx, n); late != nil {
			return fmt.Errorf("natsstore: thread %.80q: %w", u.id, errors.Join(late, err))
		}
	}
}

// once reads the thread and tries, unless an earlier try got through.
func (u *update) once(ctx context.Context, try func(context.Context, *thread) error) error {
	t, err := u.open(ctx)
	if err != nil {
		return err
	}
	if u.settle(t) {
		u.s.mirror.put(u.id, t.head.Seq, summaryOf(t.doc))
		return nil
	}
	return try(ctx, t)
}

// open guesses the thread the first time, and reads it then.
func (u *update) open(ctx context.Context) (*thread, error) {
	u.began = time.Now()
	if !u.reads {
		u.reads = true
		if t := u.s.guessed(u.id); t != nil {
			err := t.gather(ctx)
			return t, err
		}
	}
	if u.doubts && !u.sure {
		if err := u.s.sure(ctx); err != nil {
			return nil, err
		}
		u.sure = true
	}
	if u.lenient {
		return u.s.salvage(ctx, u.id)
	}
	return u.s.open(ctx, u.id)
}

// end drops births that came to nothing.
func (u *update) end(err error) error {
	if err != nil {
		u.unused()
	}
	return err
}

// unused drops births of which it is certain that no head refers to them.
func (u *update) unused() {
	if len(u.writes) == 0 {
		u.s.discard(u.births)
		u.births = nil
	}
}

// settle says whether an earlier try got through although it was reported that it did not. What a lost one wrote is dropped, if
// the head shows that it was lost: a later one came after the same write. The head that the try had seen shows nothing. For some seconds
// after a part of the network was cut off, two servers take themselves for the leader and both answer: the one that was cut off at
// once, with a refusal and then with a head that it has had before, and the other one has the write all the same.
func (u *update) settle(t *thread) bool {
	d := &t.doc
	if slices.ContainsFunc(u.writes, func(w string) bool { return slices.Contains(d.Writes, w) }) {
		return true
	}
	if u.overtaken && t.head.Seq > u.at && (slices.Contains(d.Writes, u.base) || u.base == "" && len(d.Writes) < keptWrites) {
		u.s.discard(u.lost)
		u.writes = nil
	}
	u.overtaken, u.lost = false, nil
	return false
}

// try decides and writes once.
func (u *update) try(ctx context.Context, t *thread, need mailbox.Need, decide decider) error {
	state, err := t.state(ctx, need)
	if err != nil {
		return err
	}
	change, err := decide(state)
	nothing := err != nil || change.Head == nil
	if t.guess && (nothing || change.Drop) || nothing && !u.sure {
		u.doubts = true
		return errStale // nothing will be written that shows whether this was right
	}
	if nothing && !u.lenient {
		u.s.cache.keep(t, len(t.head.data))
	}
	switch {
	case err != nil:
		return &refusal{err}
	case nothing:
		u.unused()
		return nil
	case change.Drop:
		return u.forget(ctx, t, change.Head.Fence)
	case u.lenient:
		return fmt.Errorf("natsstore: thread %.80q: %w: a change of what may be damaged", u.id, mailbox.ErrInvalid)
	}
	if err := t.write(ctx, u, change); err != nil {
		if definite(err) {
			u.s.discard(t.made)
		}
		return err
	}
	return u.commit(ctx, t)
}

// refusal is an error of decide, which no other try mends.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// definite says that nothing of an attempt can come true later.
func definite(err error) bool { return !transient(err) && !errors.Is(err, context.Canceled) }

// keptWrites is how many writes a head remembers.
const keptWrites = 8

// commit writes the head, if nobody else has.
func (u *update) commit(ctx context.Context, t *thread, options ...jetstream.PublishOpt) error {
	id, base := strconv.FormatUint(rand.Uint64(), 36), "" //nolint:gosec // not a secret
	if n := len(t.doc.Writes); n > 0 {
		base = t.doc.Writes[n-1]
	}
	t.doc.Writes = append(t.doc.Writes, id)
	t.doc.Writes = t.doc.Writes[max(len(t.doc.Writes)-keptWrites, 0):]
	doc := t.written()
	data, err := together(headSize, doc.add)
	if err != nil {
		return err
	}
	if time.Since(u.began) > u.s.cfg.OrphanAge/2 {
		return errAgain // what it refers to may count as left behind
	}
	before := len(u.writes)
	u.writes = append(u.writes, id)
	r, err := u.s.put(ctx, u.id, u.s.names.head(u.id), data, append(options, jetstream.WithExpectLastSequencePerSubject(t.head.Seq))...)
	switch {
	case overtaken(err):
		// A server may say so although it has the write: look for it first, and leave what it needs.
		u.overtaken, u.lost, u.base, u.at = true, t.made, base, t.head.Seq
		return errAgain
	case err != nil && definite(err):
		if u.s.stream.Alone() { // else another server may have the write
			u.writes = u.writes[:before]
			u.s.discard(t.made)
		}
		return fmt.Errorf("natsstore: thread %.80q: %w", u.id, err)
	case err != nil:
		return err
	}
	for _, part := range t.head.Parts {
		t.old = append(t.old, ref{Seq: part})
	}
	u.s.discard(t.old)
	t.head = record{ref: r}
	u.s.mirror.put(u.id, r.Seq, summaryOf(t.doc))
	u.s.shelf.put(u.id, t.doc.waiting)
	if !t.doc.Gone {
		u.s.cache.keep(t, len(data))
	}
	return nil
}
