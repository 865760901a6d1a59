package natsstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	reconnectWait = 100 * time.Millisecond
	pingInterval  = 10 * time.Second
	// pieceSize bounds one message; servers take 1 MiB by default.
	pieceSize = 512 << 10
	// partsHeader has the numbers of the pieces of a long record.
	partsHeader = "Mortise-Parts"
)

// errGone is a record that is not there: its head has changed meanwhile, or else it is lost.
var errGone = errors.New("a record is not there")

// record is one message, or several that belong together.
type record struct {
	ref

	data []byte
	at   time.Time
}

// put writes a record. Pieces of a long one go under names of the thread's.
func (s *Store) put(ctx context.Context, thread, subject string, data []byte, options ...jetstream.PublishOpt) (ref, error) {
	msg := nats.NewMsg(subject)
	var out ref
	if len(data) <= pieceSize {
		msg.Data = data
	} else {
		var err error
		if out.Parts, err = s.putPieces(ctx, thread, data); err != nil {
			return ref{}, err
		}
		numbers := make([]string, 0, len(out.Parts))
		for _, n := range out.Parts {
			numbers = append(numbers, strconv.FormatUint(n, 10))
		}
		msg.Header.Set(partsHeader, strings.Join(numbers, ","))
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Wait)
	defer cancel()
	s.writes.Add(1)
	ack, err := s.js.PublishMsg(ctx, msg, append(options, jetstream.WithRetryAttempts(0))...)
	if err != nil {
		return ref{}, fmt.Errorf("natsstore: write: %w", err)
	}
	out.Seq = ack.Sequence
	return out, nil
}

func (s *Store) putPieces(ctx context.Context, thread string, data []byte) (parts []uint64, err error) {
	for len(data) > 0 {
		n := min(len(data), pieceSize)
		piece, err := s.put(ctx, thread, s.names.part(thread), data[:n])
		if err != nil {
			return nil, err
		}
		parts, data = append(parts, piece.Seq), data[n:]
	}
	return parts, nil
}

// last reads the latest record of a subject. found is false when there is none.
func (s *Store) last(ctx context.Context, subject string) (r record, found bool, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		msg, err := s.stream.GetLastMsgForSubject(ctx, subject)
		r, found, err = s.whole(ctx, msg, err)
		return err
	})
	return r, found, err
}

// at reads the record of a number.
func (s *Store) at(ctx context.Context, seq uint64) (data []byte, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		msg, err := s.stream.GetMsg(ctx, seq)
		r, found, err := s.whole(ctx, msg, err)
		if err == nil && !found {
			err = errGone
		}
		data = r.data
		return err
	})
	return data, err
}

// next reads the first record of a subject from a number on.
func (s *Store) next(ctx context.Context, subject string, from uint64) (r record, found bool, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		msg, err := s.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
		r, found, err = s.whole(ctx, msg, err)
		return err
	})
	return r, found, err
}

// whole puts the pieces of a record together.
func (s *Store) whole(ctx context.Context, msg *jetstream.RawStreamMsg, err error) (record, bool, error) {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("natsstore: read: %w", err)
	}
	r := record{ref: ref{Seq: msg.Sequence}, data: msg.Data, at: msg.Time}
	if r.Parts, err = partsOf(msg.Header); err != nil {
		return record{}, false, err
	}
	for _, n := range r.Parts {
		piece, err := s.stream.GetMsg(ctx, n)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return record{}, false, errGone
		}
		if err != nil {
			return record{}, false, fmt.Errorf("natsstore: read: %w", err)
		}
		r.data = append(r.data, piece.Data...)
	}
	return r, true, nil
}

func partsOf(h nats.Header) (parts []uint64, err error) {
	list := h.Get(partsHeader)
	if list == "" {
		return nil, nil
	}
	for number := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return nil, errors.New("natsstore: a record is damaged: its pieces have no numbers")
		}
		parts = append(parts, n)
	}
	return parts, nil
}

// ask repeats a question while nobody can answer.
func (s *Store) ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	for n := 0; ; n++ {
		once, stop := context.WithTimeout(ctx, s.cfg.Wait)
		err := question(once)
		stop()
		if err == nil || !transient(err) {
			return err
		}
		if late := pause(ctx, n); late != nil {
			return errors.Join(late, err)
		}
	}
}

var errPatience = errors.New("natsstore: no server answered in time")

// transient says that asking again may help.
func transient(err error) bool {
	var api jetstream.JetStreamError
	if errors.As(err, &api) && api.APIError() != nil {
		return api.APIError().Code == http.StatusServiceUnavailable
	}
	for _, known := range []error{
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrNoServers,
		jetstream.ErrNoStreamResponse, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// overtaken says that somebody else has written first.
func overtaken(err error) bool {
	var api jetstream.JetStreamError
	if !errors.As(err, &api) || api.APIError() == nil {
		return false
	}
	code := api.APIError().ErrorCode
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// pause waits before the nth try, longer each time. It fails when ctx is over.
func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(spread(time.Millisecond << min(n, maxDoublings)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
