package viewtest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

// late is a store that lists what another process changed after some time only. Its clock is that of the store.
type late struct {
	*memstore.Store
	mu     sync.Mutex
	scans  map[string][]store.Ref
	counts map[string]map[string]int
	since  time.Time
}

const lateness = 20 * time.Millisecond

// fresh forgets what it listed if that is old. The caller holds the lock.
func (l *late) fresh(now bool) {
	if now || time.Since(l.since) > lateness {
		l.scans, l.counts, l.since = map[string][]store.Ref{}, map[string]map[string]int{}, time.Now()
	}
}

func (l *late) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	revision, err := l.Store.Apply(ctx, b)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh(true)
	return revision, err
}

func (l *late) Scan(ctx context.Context, q store.Scan) (out []store.Ref, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh(false)
	key := fmt.Sprintf("%+v", q)
	if out, ok := l.scans[key]; ok {
		return out, nil
	}
	out, err = l.Store.Scan(ctx, q)
	l.scans[key] = out
	return out, err
}

func (l *late) Count(ctx context.Context, index string) (out map[string]int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh(false)
	if out, ok := l.counts[index]; ok {
		return out, nil
	}
	out, err = l.Store.Count(ctx, index)
	l.counts[index] = out
	return out, err
}

// The suites take a second process that lists late, as the contract of a store allows.
func TestViews_late(t *testing.T) {
	t.Parallel()
	viewtest.TestViews(t, func(t *testing.T) (one, other store.Store) {
		t.Helper()
		s := memstore.New()
		l := &late{Store: s}
		for _, index := range []string{"outbox"} { // from before the first write
			if _, err := l.Count(t.Context(), index); err != nil {
				t.Fatal(err)
			}
		}
		return s, l
	})
}
