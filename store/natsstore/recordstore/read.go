package recordstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// maxBytes bounds what is read of a record.
const maxBytes = 256 << 20

var errDamaged = errors.New("its last message was not written by a recordstore; delete it")

// known is a run that there is a record of, and the number of its latest line.
type known struct {
	id   string
	last uint64
}

// runs lists the runs that there are, newest first.
func (s *Store) runs(ctx context.Context) ([]known, error) {
	latest, err := s.stream.Latest(ctx, s.names.records())
	if err != nil {
		return nil, err
	}
	out := make([]known, 0, len(latest))
	for _, r := range slices.Backward(latest) {
		if id, ok := s.names.id(r.Subject); ok && record.CheckRun(id) == nil {
			out = append(out, known{id: id, last: r.Seq})
		}
	}
	return out, nil
}

// List implements record.Store.
func (s *Store) List(n int) (list []record.Known, err error) {
	err = s.call(func(ctx context.Context) error {
		if err := s.sure(ctx); err != nil {
			return err
		}
		runs, err := s.runs(ctx)
		for i := 0; err == nil && i < len(runs) && len(list) < n; i++ {
			var first jet.Record
			if first, _, err = s.stream.Next(ctx, s.names.record(runs[i].id), 1); errors.Is(err, jet.ErrGone) {
				err = nil
				continue
			}
			var l record.Line
			if json.Unmarshal(first.Data, &l) == nil && l.Start != nil {
				list = append(list, record.Known{ID: runs[i].id, Start: *l.Start})
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("recordstore: %w", err)
	}
	return list, nil
}

// Load implements record.Store.
func (s *Store) Load(id string) (out *record.Run, err error) {
	var unknown error
	err = s.call(func(ctx context.Context) (err error) {
		if err := s.sure(ctx); err != nil {
			return err
		}
		if record.CheckRun(id) == nil {
			if out, err = s.load(ctx, id); out != nil || err != nil {
				return err
			}
		}
		runs, err := s.runs(ctx)
		if err != nil {
			return err
		}
		ids := make([]string, len(runs))
		for i := range runs {
			ids[i] = runs[i].id
		}
		if id, unknown = record.Find(id, ids, "stream "+s.names.root); unknown != nil {
			return nil //nolint:nilerr // it is returned below
		}
		out, err = s.load(ctx, id)
		return err
	})
	switch {
	case err != nil:
		return nil, wrap(id, err)
	case unknown != nil:
		return nil, unknown
	case out == nil || len(out.Starts) == 0:
		return nil, wrap(id, fmt.Errorf("it is not a record of the format %s", record.Schema))
	}
	return out, nil
}

// load reads a record, nil if there is none.
func (s *Store) load(ctx context.Context, id string) (out *record.Run, err error) {
	size := 0
	err = s.stream.Each(ctx, s.names.record(id), func(r jet.Record) error {
		if out == nil {
			out = &record.Run{}
		}
		if size += len(r.Data); size <= maxBytes {
			out.Take(r.Data)
		} else {
			out.Unreadable++
		}
		return nil
	})
	return out, err
}
