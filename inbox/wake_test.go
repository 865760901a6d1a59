package inbox_test

import (
	"context"
	"sync"
	"testing"
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
