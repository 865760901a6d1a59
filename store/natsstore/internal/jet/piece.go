package jet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of the first message of a long record: the numbers of its pieces, and a pattern that fits their subjects.
const (
	partsHeader  = "Mortise-Parts"
	piecesHeader = "Mortise-Pieces"
)

// refer puts pieces into a header. They have subjects like piece, but for the last word.
func refer(h nats.Header, parts []uint64, piece string) {
	numbers := make([]string, 0, len(parts))
	for _, n := range parts {
		numbers = append(numbers, strconv.FormatUint(n, 10))
	}
	h.Set(partsHeader, strings.Join(numbers, ","))
	h.Set(piecesHeader, piece[:strings.LastIndexByte(piece, '.')+1]+"*")
}

// Parts are the numbers of the pieces of a message.
func Parts(h nats.Header) (parts []uint64, err error) {
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

func (s *Stream) putPieces(ctx context.Context, piece func() *nats.Msg, data []byte) ([]uint64, error) {
	pieces := slices.Collect(slices.Chunk(data, PieceSize))
	return beside(len(pieces), func(i int) (uint64, error) {
		msg := piece()
		msg.Data = pieces[i]
		return s.publish(ctx, msg)
	})
}

// manyPieces is from how many pieces on they are read in one go.
const manyPieces = 4

// pieces are the data of a record, which has those of its first message.
func (s *Stream) pieces(ctx context.Context, r Record) ([]byte, error) {
	if len(r.Parts) == 0 {
		return r.Data, nil
	}
	known := map[uint64][]byte{}
	if pattern := r.Header.Get(piecesHeader); pattern != "" && len(r.Parts) >= manyPieces {
		if err := s.readPieces(ctx, pattern, r.Ref, known); err != nil {
			return nil, err
		}
	}
	list, err := beside(len(r.Parts), func(i int) ([]byte, error) {
		if data, ok := known[r.Parts[i]]; ok {
			return data, nil
		}
		piece, err := s.GetMsg(ctx, r.Parts[i])
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, Gone(r.Parts[i])
		case err != nil:
			return nil, fmt.Errorf("natsstore: read: %w", err)
		}
		return piece.Data, nil
	})
	return bytes.Join(list, nil), err
}

// readPieces reads the pieces of a record, as far as the server that is asked has them.
func (s *Stream) readPieces(ctx context.Context, pattern string, r Ref, to map[uint64][]byte) error {
	last := slices.Max(r.Parts)
	err := s.consume(ctx, jetstream.ConsumerConfig{
		FilterSubject: pattern, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.First(),
	}, func(msg jetstream.Msg, m *jetstream.MsgMetadata) (bool, error) {
		if slices.Contains(r.Parts, m.Sequence.Stream) {
			to[m.Sequence.Stream] = msg.Data()
		}
		return m.Sequence.Stream < last, nil
	})
	if errors.Is(err, errCut) {
		return nil
	}
	return err
}

// maxPieces is how many pieces are written or read at once.
const maxPieces = 8

// beside does n things, some at once, and returns the first error.
func beside[T any](n int, do func(i int) (T, error)) ([]T, error) {
	out, errs := make([]T, n), make([]error, n)
	var wg sync.WaitGroup
	places := make(chan struct{}, maxPieces)
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			out[i], errs[i] = do(i)
			<-places
		})
	}
	wg.Wait()
	return out, cmp.Or(errs...)
}
