package inbox_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// TestSmallBoxNeverSleeps has senders find the box full just as the reader takes the
// last notification: one of the two has to see the other. With one sender nothing else repairs a
// wake-up that was lost.
func TestSmallBoxNeverSleeps(t *testing.T) {
	t.Parallel()
	const each = 50_000
	for _, senders := range []int{1, 4} {
		depth := 1
		for name, read := range map[string]func(context.Context, *inbox.Box) (int, error){
			"recv": func(ctx context.Context, b *inbox.Box) (int, error) {
				_, err := b.Recv(ctx)
				return 1, err
			},
			"drain": func(ctx context.Context, b *inbox.Box) (int, error) {
				_, err := b.Recv(ctx)
				return 1 + len(b.Drain()), err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // of which it needs none when it works
			b := inbox.NewBox(depth, nil)
			var wg sync.WaitGroup
			for range senders {
				wg.Go(func() {
					for range each {
						if err := b.Send(ctx, abi.Notice{Kind: abi.NoticeCustom}); err != nil {
							t.Errorf("depth %d, %s: %v", depth, name, err)
							return
						}
					}
				})
			}
			for got := 0; got < senders*each; {
				n, err := read(ctx, b)
				if err != nil {
					t.Errorf("depth %d, %s: after %d of %d: %v", depth, name, got, senders*each, err)
					break
				}
				got += n
			}
			wg.Wait()
			cancel()
			if t.Failed() {
				return
			}
		}
	}
}

// clock is one that does not move by itself, and counts how often it was read.
type clock struct {
	mu    sync.Mutex
	at    time.Time
	reads int
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	return c.at
}

func (c *clock) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

func (c *clock) set(forward time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(forward)
}

// TestWake_clock has wakes follow a clock that stops, which costs little, and one that is set.
func TestWake_clock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, c := &wakes{t0: time.Now()}, &clock{at: time.Now()}
		o := newInbox(t, inbox.Config{Now: c.now, Debounce: 1})
		o.Start(w.wake)
		deliver(t, o, completed("t0", "x"))
		<-time.After(10 * time.Millisecond) // ten million times what is missing
		if got, n := w.times(), c.count(); len(got) != 0 || n > 100 {
			t.Errorf("woken at %v, the clock was read %d times", got, n)
		}
		d := take(t, o)
		<-time.After(10 * time.Millisecond)
		if got := w.times(); len(got) != 0 {
			t.Errorf("woken at %v", got)
		}
		c.set(inbox.DefaultLease)
		<-time.After(inbox.DefaultMaxRetry)
		if len(w.times()) == 0 {
			t.Error("not woken although the lease is over")
		}
		d.Release()
		closeInbox(t, o)
	})
}
