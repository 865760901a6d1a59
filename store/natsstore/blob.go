package natsstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// fetches is how many messages are read at once.
const fetches = 8

// entries gets the data of entries from memory and from the servers. It fails with errGone if some were moved meanwhile.
func (s *Store) entries(ctx context.Context, list []entry) ([][]byte, error) {
	out, read := make([][]byte, len(list)), map[uint64][][]byte{}
	for i, e := range list {
		if out[i] = e.data; e.data != nil {
			continue
		}
		at := e.seq
		if e.chunk != nil {
			at = e.chunk.seq
		}
		if read[at] == nil {
			data, err := s.fetchEntries(ctx, e)
			if err != nil {
				return nil, err
			}
			read[at] = data
		}
		if e.index >= len(read[at]) {
			return nil, fmt.Errorf("message %d is damaged: entry %d is missing", at, e.index)
		}
		out[i] = bytes.Clone(read[at][e.index])
	}
	return out, nil
}

// fetchEntries reads the entries of the chunk or of the operation that has one.
func (s *Store) fetchEntries(ctx context.Context, e entry) (list [][]byte, err error) {
	if e.chunk != nil {
		data, err := s.blob(ctx, e.chunk.seq, e.chunk.parts)
		if err != nil {
			return nil, err
		}
		err = decode(data, &list)
		return list, err
	}
	data, err := s.blob(ctx, e.seq, 1)
	if err != nil {
		return nil, err
	}
	m, err := s.unpack(ctx, e.seq, data)
	if err != nil {
		return nil, err
	}
	for i := range m.op.Append {
		list = append(list, m.op.Append[i].Data)
	}
	return list, nil
}

// blob reads what is in some messages.
func (s *Store) blob(ctx context.Context, first, parts uint64) ([]byte, error) {
	list, errs := make([][]byte, parts), make([]error, parts)
	places := make(chan struct{}, fetches)
	var wg sync.WaitGroup
	for i := range list {
		places <- struct{}{}
		wg.Go(func() {
			list[i], errs[i] = s.at(ctx, first+uint64(i)) //nolint:gosec // not negative
			<-places
		})
	}
	wg.Wait()
	return bytes.Join(list, nil), cmp.Or(errs...)
}

// at reads what a message has.
func (s *Store) at(ctx context.Context, seq uint64) (data []byte, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		msg, err := s.stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("%w: %d", errGone, seq)
		}
		if err == nil {
			data = msg.Data
		}
		return err
	})
	return data, err
}
