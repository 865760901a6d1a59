package outboxstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// thread is what is known of a thread and of its log. The Store's lock guards it, except what only
// the one who has the turn looks at.
type thread struct {
	name  string
	state state
	queue []*batch // to be written, in order
	users int      // who has it in hands

	// turn is taken by who writes. The fields below are that one's.
	turn chan struct{}
	last uint64 // the number of the log's latest message, 0 if there is none
	base uint64 // from which number on messages count
	// logged is about how many bytes the log has.
	logged int
	// unsure are messages that may be in the log, of which everybody was told that they are not. taint says
	// that one of them is.
	unsure map[string]bool
	taint  bool
	// loose says that copies of a first message may be on their way: they could begin a log that was dropped.
	loose bool
}

// batch are operations that are written together.
type batch struct {
	ops    []*pending
	size   int
	flying bool
	done   chan struct{}
	err    error
}

// pending is an operation to be written.
type pending struct {
	op

	taken bool   // its key was
	seq   uint64 // of its entry
}

// size is about how many bytes an operation has.
func (o *op) size() int {
	n := overhead + len(o.Task) + len(o.Record) + len(o.Data) + len(o.Key) + 8*len(o.Remove)
	for _, task := range o.Forget {
		n += len(task)
	}
	return n
}

// grows says whether an operation needs room.
func (o *op) grows() bool { return o.Data != nil || len(o.Task)+len(o.Key) > 0 }

func (b *batch) full(more int) bool {
	return b.flying || len(b.ops) == maxEntries || len(b.ops) > 0 && b.size+more > jet.PieceSize/2
}

// submit writes an operation, with others that wait for the same thread.
func (s *Store) submit(ctx context.Context, name string, o op) (uint64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	p := &pending{op: o}
	t, b, err := s.join(name, p)
	if err != nil {
		return 0, err
	}
	defer s.leave(t)
	over := ctx.Done()
	for {
		select {
		case <-b.done:
			return p.seq, b.err
		case t.turn <- struct{}{}:
			s.fly(ctx, t)
			<-t.turn
		case <-over:
			if s.withdraw(b, p) {
				return 0, context.Cause(ctx)
			}
			over = nil // it is on its way: what becomes of it is known soon
		}
	}
}

// join puts an operation into a batch.
func (s *Store) join(name string, p *pending) (*thread, *batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.grows() && s.size+int64(p.size()) > s.cfg.MaxBytes {
		return nil, nil, fmt.Errorf("%w: %d bytes of %d are live", outbox.ErrFull, s.size, s.cfg.MaxBytes)
	}
	t := s.threads[name]
	if t == nil {
		t = newThread(name)
		s.threads[name] = t
	}
	t.users++
	n := len(t.queue)
	if n == 0 || t.queue[n-1].full(p.size()) {
		t.queue = append(t.queue, &batch{done: make(chan struct{})})
		n++
	}
	b := t.queue[n-1]
	b.ops, b.size = append(b.ops, p), b.size+p.size()
	return t, b, nil
}

func newThread(name string) *thread {
	return &thread{name: name, state: newState(), turn: make(chan struct{}, 1), unsure: map[string]bool{}}
}

// leave forgets a thread of which nothing is left.
func (s *Store) leave(t *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.users--
	if t.users == 0 && t.last == 0 && len(t.unsure) == 0 && t.state.empty() {
		delete(s.threads, t.name)
	}
}

// withdraw takes an operation back that nobody has begun to write.
func (s *Store) withdraw(b *batch, p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.flying {
		return false
	}
	b.ops = slices.DeleteFunc(b.ops, func(x *pending) bool { return x == p })
	return true
}
