package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
)

// maxPage is how many places [Refs] reads at a time, at most.
const maxPage = 1000

// Refs yields the places of an index page by page: s.Limit of them at first, or 1000 if that is 0, then twice as many each time up to 1000.
// After an error nothing comes.
func Refs(ctx context.Context, in Store, s Scan) iter.Seq2[Ref, error] {
	s.Limit = min(cmp.Or(s.Limit, maxPage), maxPage)
	return func(yield func(Ref, error) bool) {
		for next := s; ; next.Limit = min(2*next.Limit, maxPage) {
			list, err := in.Scan(ctx, next)
			if err != nil {
				yield(Ref{}, fmt.Errorf("index %s: %w", s.Index, err))
				return
			}
			for _, ref := range list {
				if !yield(ref, nil) {
					return
				}
			}
			if len(list) < next.Limit {
				return
			}
			next.After = list[len(list)-1]
			next.After.Value = nil
		}
	}
}
