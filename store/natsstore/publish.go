package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of atomic batches and of times to live, as nats-server has them.
const (
	batchIDHeader     = "Nats-Batch-Id"
	batchSeqHeader    = "Nats-Batch-Sequence"
	batchCommitHeader = "Nats-Batch-Commit"
	ttlHeader         = "Nats-TTL"
	expectOfHeader    = "Nats-Expected-Last-Subject-Sequence-Subject"
)

const (
	// inlineSize is the size of the largest body that is in the message of its operation: reads get that message from the leader.
	inlineSize = 64 << 10
	// pieceSize is that of the messages of larger ones, if the servers accept it.
	pieceSize = 512 << 10
	// window is how many pieces are sent before an answer is awaited.
	window = 8
	// maxMessages is how many messages servers accept in one atomic batch.
	maxMessages = 1000
	// tombstoneTTL is how long the tombstone of a dropped thread stays.
	tombstoneTTL = 7 * 24 * time.Hour
)

// expecting makes a message that is refused unless the latest one of its subject has a sequence, 0 for none.
func expecting(subject string, data []byte, seq uint64) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = data
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(seq, 10))
	return m
}

// split makes messages of a large body.
func (s *Store) split(subject string, body []byte) (msgs []*nats.Msg) {
	size := min(pieceSize, int(s.nc.MaxPayload())-4<<10)
	for part := range slices.Chunk(body, size) {
		m := nats.NewMsg(subject)
		m.Data = part
		msgs = append(msgs, m)
	}
	return msgs
}

// publish writes messages, all or none, and returns the sequence of the last one. The ones before have the sequences before it. An
// error that is neither errStale nor an answer of a server leaves open whether they were written.
func (s *Store) publish(ctx context.Context, msgs []*nats.Msg) (uint64, error) {
	if len(msgs) > maxMessages {
		return 0, fmt.Errorf("%d messages are needed, and servers accept %d at once: make smaller batches", len(msgs), maxMessages)
	}
	if len(msgs) == 1 {
		return s.request(ctx, msgs[0])
	}
	id := uuid.NewString()
	for i, m := range msgs {
		m.Header.Set(batchIDHeader, id)
		m.Header.Set(batchSeqHeader, strconv.Itoa(i+1))
		if i == len(msgs)-1 {
			m.Header.Set(batchCommitHeader, "1")
			return s.request(ctx, m)
		}
		if (i+1)%window != 0 {
			if err := s.nc.PublishMsg(m); err != nil {
				return 0, err
			}
		} else if _, err := s.request(ctx, m); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// request sends a message and returns the sequence that it got, 0 for one in the midst of an atomic batch.
func (s *Store) request(ctx context.Context, m *nats.Msg) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Wait)
	defer cancel()
	reply, err := s.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, err
	}
	if len(reply.Data) == 0 {
		return 0, nil
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"`
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return 0, fmt.Errorf("answer of the server: %w", err)
	}
	switch {
	case ack.Error == nil:
		return ack.Seq, nil
	case ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence,
		ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return 0, fmt.Errorf("%w: %w", errStale, ack.Error)
	}
	return 0, ack.Error
}

// Answers of servers that may be others soon: too many atomic batches at once, and one whose beginning a former leader has.
const (
	tooManyBatches  jetstream.ErrorCode = 10210
	incompleteBatch jetstream.ErrorCode = 10176
)

// refused reports whether nothing was written, and trying again may help.
func refused(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == http.StatusServiceUnavailable || api.ErrorCode == tooManyBatches || api.ErrorCode == incompleteBatch
	}
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, errOffline)
}
