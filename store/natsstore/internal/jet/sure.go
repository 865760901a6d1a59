package jet

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// quorum lets questions share one proof that the leader leads.
type quorum struct {
	mu sync.Mutex
	// next is the proof that nobody has begun to get yet, of which somebody waits for the one before.
	next *proof
	busy sync.Mutex
}

// proof is a proof under way. It is done when it is closed.
type proof struct {
	done chan struct{}
	err  error
}

// Alone says whether the stream is on one server, whose answers are the latest.
func (s *Stream) Alone() bool { return s.CachedInfo().Config.Replicas <= 1 }

// Sure makes certain that what is read of the stream after it is not older than its call. A leader that is cut off from the others
// answers questions until it notices, which takes it some 10 s; but it cannot write: so this writes a record of no content, of that subject,
// of which the stream keeps one; and it waits while another server may answer as the leader. It costs a write and a question, which those share
// that ask at once; and nothing if the stream is on one server.
func (s *Stream) Sure(ctx context.Context, subject string) error {
	return s.certain(ctx, func(ctx context.Context) error {
		_, err := s.link.JS.PublishMsg(ctx, nats.NewMsg(subject), jetstream.WithRetryAttempts(0))
		return err //nolint:wrapcheck // see prove
	})
}

// SureEmpty is like [Stream.Sure] for a stream that would keep each record of the subject: it has the servers drop what the subject has,
// which is nothing. A majority has to have that too, before the leader says that it is done.
func (s *Stream) SureEmpty(ctx context.Context, subject string) error {
	return s.certain(ctx, func(ctx context.Context) error {
		return s.Purge(ctx, jetstream.WithPurgeSubject(subject)) //nolint:wrapcheck // see prove
	})
}

// certain shares proofs that the leader leads. All that a stream is asked for are of one kind.
func (s *Stream) certain(ctx context.Context, act func(context.Context) error) error {
	if s.Alone() {
		return nil
	}
	q := &s.quorum
	q.mu.Lock()
	p, first := q.next, q.next == nil
	if first {
		p = &proof{done: make(chan struct{})}
		q.next = p
	}
	q.mu.Unlock()
	if first {
		go s.prove(context.WithoutCancel(ctx), p, act)
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("natsstore: is there a leader? %w", context.Cause(ctx))
	}
}

// prove writes when the proof before is done. Who asks from then on waits for the next one.
func (s *Stream) prove(ctx context.Context, p *proof, act func(context.Context) error) {
	q := &s.quorum
	q.busy.Lock()
	defer q.busy.Unlock()
	defer close(p.done)
	q.mu.Lock()
	q.next = nil
	q.mu.Unlock()
	_, p.err = look(ctx, s.link, func(ctx context.Context) (struct{}, error) {
		err := s.alone(ctx, act)
		if err != nil {
			err = fmt.Errorf("natsstore: is there a leader? %w", err)
		}
		return struct{}{}, err
	})
}
