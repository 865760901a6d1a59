package natsstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/state"
)

// errStale is a message that was refused because of what was written before it.
var errStale = errors.New("other operations were written first")

// errOffline is that no server is connected.
var errOffline = errors.New("no server is connected")

// Apply implements store.Store.
func (s *Store) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	leave, err := s.turns.enter(ctx, b.Thread)
	if err != nil {
		return 0, err
	}
	revision, err := s.apply(ctx, &b)
	if err == nil && s.grown(b.Thread) && s.work(func(ctx context.Context) {
		defer leave()
		s.rollUp(ctx, b.Thread)
	}) {
		return revision, nil
	}
	leave()
	switch {
	case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists): // it names the thread
		err = fmt.Errorf("natsstore: %w", err)
	case err != nil:
		err = fmt.Errorf("natsstore: thread %.80q: %w", b.Thread, redact(s.cfg.URL, err))
	}
	return revision, err
}

// apply decides and writes until one of both is certain. The caller has the thread's turn.
func (s *Store) apply(ctx context.Context, b *store.Batch) (uint64, error) {
	p := attempt{b: b, claims: map[state.Place]uint64{}}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	for n := 0; ; n++ {
		revision, err := s.try(ctx, &p)
		if err == nil || !errors.Is(err, errStale) && !refused(err) {
			return revision, err
		}
		if late := pause(ctx, n); late != nil {
			return 0, store.NotApplied(errors.Join(late, err))
		}
		if errors.Is(err, errStale) {
			if err := s.learn(ctx, &p); err != nil {
				return 0, store.NotApplied(err)
			}
		}
	}
}

// attempt is a batch that is being applied.
type attempt struct {
	b *store.Batch
	// sure is set when the state of the thread is that of the stream, as is that of the holder of a place.
	sure   bool
	holder string
	// places are those that the batch takes, claims the sequences of their latest messages, as far as they are known.
	places []state.Place
	claims map[state.Place]uint64
}

// try decides about a batch, and writes it if it is accepted.
func (s *Store) try(ctx context.Context, p *attempt) (uint64, error) {
	var v verdict
	if err := s.view(func(m *mirror) { v = m.decide(p.b) }); err != nil {
		return 0, err
	}
	if v.Revision != 0 {
		return v.Revision, nil
	}
	if v.stale { // those who waited together learn it at once, and none of them before the others can try again
		return 0, v.Refusal
	}
	if v.Refusal != nil {
		return s.refuse(ctx, p, v)
	}
	p.places = v.Places
	msgs, err := s.operation(p, v)
	if err != nil {
		return 0, err
	}
	if !s.nc.IsConnected() {
		return 0, errOffline // the client would send it later, perhaps too late
	}
	seq, err := s.publish(ctx, msgs)
	if err != nil {
		return 0, err
	}
	return seq, s.awaitSeq(ctx, p.b.Thread, seq)
}

// refuse returns a refusal if the state was that of the stream when it was decided, and otherwise makes it so.
func (s *Store) refuse(ctx context.Context, p *attempt, v verdict) (uint64, error) {
	if p.sure && (v.Holder == "" || v.Holder == p.holder) {
		return 0, v.Refusal
	}
	if err := s.sure(ctx, p.b.Thread); err != nil {
		return 0, err
	}
	if v.Holder != "" && v.Holder != p.b.Thread {
		if err := s.sure(ctx, v.Holder); err != nil {
			return 0, err
		}
	}
	p.sure, p.holder = true, v.Holder
	return s.try(ctx, p)
}

// operation makes the messages of a batch: the pieces of a large one, a claim for each place that it takes, and the operation.
func (s *Store) operation(p *attempt, v verdict) ([]*nats.Msg, error) {
	b := p.b
	body, err := encode(&operation{
		ID: b.ID, Drop: b.Drop, Delete: b.Delete, Put: b.Put, Trim: b.Trim, Append: b.Append, Notify: b.Notify,
	})
	if err != nil {
		return nil, err
	}
	e := envelope{Thread: b.Thread, Kind: kindOperation, Fresh: v.fresh, Prev: v.prev, Writer: s.id, Body: body}
	if v.gone {
		e.Kind = kindGone
	}
	var claims []*nats.Msg
	data, err := encode(claim{Thread: b.Thread})
	if err != nil {
		return nil, err
	}
	for _, place := range v.Places {
		claims = append(claims, expecting(s.names.place(place), data, p.claims[place]))
	}
	return s.wrap(e, claims)
}

// wrap makes a message of a thread that follows others, with pieces before those if its body is large.
func (s *Store) wrap(e envelope, others []*nats.Msg) ([]*nats.Msg, error) {
	var msgs []*nats.Msg
	if len(e.Body) > inlineSize {
		msgs = s.split(s.names.pieces(e.Thread), e.Body)
		e.Parts, e.Back, e.Body = uint64(len(msgs)), uint64(len(msgs)+len(others)), nil
	}
	data, err := encode(&e)
	if err != nil {
		return nil, err
	}
	msg := expecting(s.names.thread(e.Thread), data, e.Prev)
	if e.Kind != kindOperation {
		msg.Header.Set(nats.MsgRollup, nats.MsgRollupSubject)
	}
	if e.Kind == kindGone {
		msg.Header.Set(ttlHeader, tombstoneTTL.String())
	}
	return append(append(msgs, others...), msg), nil
}

// learn catches up after a message was refused: with the thread, and with the places that the batch takes.
func (s *Store) learn(ctx context.Context, p *attempt) error {
	if err := s.sure(ctx, p.b.Thread); err != nil {
		return err
	}
	p.sure, p.holder = false, ""
	for _, place := range p.places {
		seq, holder, err := s.lastClaim(ctx, place)
		if err != nil {
			return err
		}
		if holder != "" && holder != p.b.Thread {
			if err := s.sure(ctx, holder); err != nil {
				return err
			}
		}
		p.claims[place] = seq
	}
	return nil
}
