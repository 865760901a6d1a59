package blob

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Prune is due after pruneEvery, or when so many texts were stored that they fill 1/pruneShare of MaxBytes.
const (
	pruneEvery = time.Hour
	pruneShare = 16
)

// place is the key of a text in the index: by age, with its size.
func place(at time.Time, size int64) string { return store.Number(at.UnixMilli()) + store.Number(size) }

// due notes that a text was stored and reports whether it is time to prune.
func (s *Store) due(size int64) bool {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.added += size
	if now.Before(s.pruneAt) && s.added < s.cfg.MaxBytes/pruneShare {
		return false
	}
	s.added, s.pruneAt = 0, now.Add(min(pruneEvery, s.cfg.MaxAge))
	return true
}

// listed is a text as the index has it.
type listed struct {
	thread, handle string
	at, size       int64
}

// Maintain prunes until ctx is done: at once, and then every hour, or after each MaxAge if that is shorter.
func (s *Store) Maintain(ctx context.Context) {
	timer := time.NewTicker(min(pruneEvery, max(s.cfg.MaxAge, time.Second)))
	defer timer.Stop()
	for {
		if _, _, err := s.Prune(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.WarnContext(ctx, "old texts could not be deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// Prune deletes texts that are too old, and the oldest ones while all have more than MaxBytes or are more than MaxCount.
// It returns how many texts it deleted, and their bytes.
func (s *Store) Prune(ctx context.Context) (n int, bytes int64, err error) {
	all, total, err := s.list(ctx)
	if err != nil {
		return 0, 0, err
	}
	oldest := s.cfg.Now().Add(-s.cfg.MaxAge).UnixMilli()
	for _, l := range all {
		many := s.cfg.MaxCount > 0 && len(all)-n > s.cfg.MaxCount
		if l.at >= oldest && total-bytes <= s.cfg.MaxBytes && !many {
			break
		}
		cell := store.One(cellKind, l.handle)
		_, err := store.Update(ctx, s.cfg.Store, l.thread, store.Query{}, func(now store.Snapshot) (*store.Batch, error) {
			if now.Revision == 0 {
				return nil, nil // the thread was dropped meanwhile, and stays so
			}
			return &store.Batch{Delete: []store.Range{cell}}, nil
		})
		if err != nil {
			return n, bytes, fmt.Errorf("blob: prune: thread %.80q: %w", l.thread, err)
		}
		n++
		bytes += l.size
	}
	return n, bytes, nil
}

// list returns all texts, the oldest first, and their bytes.
func (s *Store) list(ctx context.Context) (all []listed, total int64, err error) {
	for ref, err := range store.Refs(ctx, s.cfg.Store, store.Scan{Index: index, Group: group}) {
		l := listed{thread: ref.Thread, handle: ref.Key}
		if err == nil {
			l.at, err = store.ParseNumber(ref.IndexKey)
		}
		if err == nil {
			l.size, err = store.ParseNumber(ref.IndexKey[len(store.Number(0)):])
		}
		if err != nil {
			return nil, 0, fmt.Errorf("blob: list: %w", err)
		}
		all, total = append(all, l), total+l.size
	}
	return all, total, nil
}
