package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/store"
)

// threadOf decodes the record of a listing. A damaged one has nothing but its id: a read of the thread returns the error.
func threadOf(ref store.Ref) Thread {
	t := Thread{ID: ref.Thread}
	if err := json.Unmarshal(ref.Value, &t); err != nil {
		return Thread{ID: ref.Thread}
	}
	return t
}

// maxPage bounds what is listed at once.
const maxPage = 1000

// scan goes through an index, in pages of a size, until visit returns an error. With errFull it has all it wants.
func (q *Queue) scan(ctx context.Context, s store.Scan, page int, visit func(store.Ref) error) error {
	s.Limit = min(max(page, 1), maxPage)
	for {
		list, err := q.store.Scan(ctx, s)
		if err != nil {
			return fmt.Errorf("mailbox: index %s: %w", s.Index, err)
		}
		for _, ref := range list {
			if err := visit(ref); errors.Is(err, errFull) {
				return nil
			} else if err != nil {
				return err
			}
		}
		if len(list) < s.Limit {
			return nil
		}
		s.After = list[len(list)-1]
		s.After.Value = nil
		s.Limit = min(2*s.Limit, maxPage)
	}
}

// errFull ends a scan.
var errFull = errors.New("full")

// scanThreads lists threads that are wanted, limit at most.
func (q *Queue) scanThreads(ctx context.Context, s store.Scan, limit int, want func(Thread) bool) (out []Thread, err error) {
	if limit <= 0 {
		return nil, context.Cause(ctx)
	}
	s.Values = true
	err = q.scan(ctx, s, limit, func(ref store.Ref) error {
		if t := threadOf(ref); want(t) {
			out = append(out, t)
		}
		if len(out) == limit {
			return errFull
		}
		return nil
	})
	return out, err
}
