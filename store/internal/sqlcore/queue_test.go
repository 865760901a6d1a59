package sqlcore_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

type (
	queue = sqlcore.Queue[int]
	job   = sqlcore.Job[int]
)

// groups runs a job, with those that share its transaction, while others come, and records the groups.
type groups struct {
	queue
	mu  sync.Mutex
	all [][]int
}

func (g *groups) do(ctx context.Context, j *job, hold <-chan struct{}) error {
	return g.Do(ctx, j, func() {
		<-hold
		runtime.Gosched()
		group, size := []int{j.Item}, j.Size
		for !j.Alone {
			next := g.Next(len(group), size, func(n int) bool { return n >= 0 })
			if next == nil {
				break
			}
			group, size = append(group, next.Item), size+next.Size
			next.Done()
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all = append(g.all, group)
	})
}

// TestQueue holds that jobs run in the order in which they came, in groups of bounded numbers and sizes, that a job which runs alone does
// not part a group, and that each runs once.
func TestQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &groups{queue: queue{Jobs: 3, Bytes: 10}}
		hold := make(chan struct{})
		var wg sync.WaitGroup
		for _, j := range []*job{
			{Item: 1}, {Item: 2}, {Item: 6, Alone: true}, {Item: 3}, {Item: 4, Size: 6}, {Item: 5, Size: 6}, {Item: 7, Size: 99}, {Item: -8}, {Item: 9, Last: true},
		} {
			wg.Go(func() {
				if err := g.do(t.Context(), j, hold); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if n := g.Len(); n != 9 || !g.Any(func(n int) bool { return n == 9 }) || g.Any(func(n int) bool { return n == 1 }) {
			t.Errorf("%d jobs", n)
		}
		if err := g.do(t.Context(), &job{}, hold); !errors.Is(err, sqlcore.ErrClosed) {
			t.Errorf("after the last job: %v", err)
		}
		close(hold)
		wg.Wait()
		want := [][]int{{1, 2, 3}, {6}, {4}, {5}, {7}, {-8, 9}}
		if !slices.EqualFunc(g.all, want, slices.Equal) || g.Len() != 0 {
			t.Errorf("groups %v, want %v; %d jobs are left", g.all, want, g.Len())
		}
	})
}

// TestQueue_withdrawn holds that a job whose caller went does not run, and that the others do.
func TestQueue_withdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &groups{queue: queue{Jobs: 3, Bytes: 10}}
		hold, cause := make(chan struct{}), errors.New("the caller went")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for n, ctx := range []context.Context{t.Context(), ctx, t.Context()} {
			wg.Go(func() {
				if err := g.do(ctx, &job{Item: n}, hold); !errors.Is(err, context.Cause(ctx)) {
					t.Errorf("job %d: %v", n, err)
				}
			})
			synctest.Wait()
		}
		cancel(cause)
		synctest.Wait()
		close(hold)
		wg.Wait()
		if !slices.EqualFunc(g.all, [][]int{{0, 2}}, slices.Equal) {
			t.Errorf("groups %v", g.all)
		}
	})
}

// TestQueue_parallel holds that jobs which come at any moment run once each.
func TestQueue_parallel(t *testing.T) {
	t.Parallel()
	const jobs = 2000
	g := &groups{queue: queue{Jobs: 5, Bytes: 10}}
	open := make(chan struct{})
	close(open)
	var wg sync.WaitGroup
	for n := range jobs {
		wg.Go(func() {
			if err := g.do(t.Context(), &job{Item: n, Alone: n%7 == 0}, open); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all := slices.Concat(g.all...)
	slices.Sort(all)
	if len(slices.Compact(all)) != jobs || len(all) != jobs {
		t.Errorf("%d jobs ran, want %d", len(all), jobs)
	}
}
