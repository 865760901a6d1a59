package jet

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrPatience is that Link.Patience is over.
var ErrPatience = errors.New("natsstore: no server answered in time")

// Ask repeats a question while nobody can answer.
func (s *Stream) Ask(ctx context.Context, question func(context.Context) error) error {
	return s.link.ask(ctx, question)
}

func (l *Link) ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.Patience, ErrPatience)
	defer cancel()
	for n := 0; ; n++ {
		once, stop := context.WithTimeout(ctx, l.Wait)
		err := question(once)
		stop()
		if err == nil || !Transient(err) {
			return err
		}
		if late := Pause(ctx, n); late != nil {
			return errors.Join(late, err)
		}
	}
}

// A question without an answer is put again when there is a new leader: whoever was asked may be dead. It is put once more after
// askAgain, and so on, each time later, maxBeside times in all: a new leader says nothing before it is ready. It is not put again by
// the clock alone: that would make a slow server slower.
const (
	askAgain  = 50 * time.Millisecond
	maxBeside = 6
)

// look asks what changes nothing, so that it can be asked again before the answer is overdue.
func look[T any](ctx context.Context, l *Link, question func(context.Context) (T, error)) (out T, err error) {
	err = l.ask(ctx, func(ctx context.Context) error {
		out, err = first(ctx, &l.leaders, question)
		return err
	})
	return out, err
}

// answer is what came of a question.
type answer[T any] struct {
	out T
	err error
}

// first asks, asks again beside that when there is a new leader, and takes the first answer that is of use.
func first[T any](ctx context.Context, l *leaders, question func(context.Context) (T, error)) (T, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan answer[T], maxBeside)
	changed := l.next()
	asked, open := 0, 0
	put := func() {
		if asked == maxBeside {
			return
		}
		asked, open = asked+1, open+1
		go func() {
			out, err := question(ctx)
			answers <- answer[T]{out, err}
		}()
	}
	var again <-chan time.Time
	wait := askAgain
	for put(); ; {
		select {
		case a := <-answers:
			open--
			if a.err == nil || !Transient(a.err) || open == 0 {
				return a.out, a.err
			}
		case <-changed:
			changed, again, wait = l.next(), time.After(askAgain), askAgain
			put()
		case <-again:
			wait *= 2
			again = time.After(wait)
			put()
		}
	}
}

// noPeers is the code of a server that knows of too few others to keep what is to be made: they may not be there yet, or be too busy to
// be heard.
const noPeers jetstream.ErrorCode = 10005

// Transient says that asking again may help.
func Transient(err error) bool {
	var api jetstream.JetStreamError
	if errors.As(err, &api) && api.APIError() != nil {
		return api.APIError().Code == http.StatusServiceUnavailable || api.APIError().ErrorCode == noPeers
	}
	for _, known := range []error{
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrNoServers,
		jetstream.ErrNoStreamResponse, jetstream.ErrAsyncPublishTimeout, jetstream.ErrTooManyStalledMsgs, context.DeadlineExceeded, errTwins, errDeaf,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// Overtaken says that somebody else has written first.
func Overtaken(err error) bool {
	if err == nil {
		return false
	}
	var api jetstream.JetStreamError
	if !errors.As(err, &api) || api.APIError() == nil {
		return false
	}
	code := api.APIError().ErrorCode
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

const maxDoublings = 8

// Pause waits before the nth try, longer each time. It fails when ctx is over.
func Pause(ctx context.Context, n int) error {
	timer := time.NewTimer(spread(time.Millisecond << min(n, maxDoublings)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// spread moves a pause by chance, so that those who wait do not come at once.
func spread(d time.Duration) time.Duration {
	return d/2 + rand.N(d) //nolint:gosec // not a secret
}
