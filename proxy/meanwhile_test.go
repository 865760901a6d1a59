package proxy_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// waitingStore looks for lanes when the upstream has the request.
type waitingStore struct {
	store.Store

	came   chan struct{}
	before atomic.Int64 // scans that gave up
}

func (s *waitingStore) Scan(ctx context.Context, q store.Scan) ([]store.Ref, error) {
	if q.Index != "proxy.lanes" {
		return s.Store.Scan(ctx, q) // for threads to delete
	}
	select {
	case <-s.came:
	case <-ctx.Done():
		s.before.Add(1)
	}
	return s.Store.Scan(context.WithoutCancel(ctx), q)
}

// A request that is only observed does not wait for its lane to be found, nor does the answer miss in the ledger. One on which plugins may
// act waits.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header []string
		waits  bool
	}{
		"OAuth":   {[]string{"Anthropic-Beta", "oauth-2025-04-20", "X-Api-Key", ""}, false},
		"plugins": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &waitingStore{Store: memstore.New(), came: make(chan struct{})}
			up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
				close(db.came)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, streamed)
			})
			s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{}), Store: db})
			if _, got := post(t, s.url+"/v1/messages", hello, c.header...); string(got) != streamed {
				t.Errorf("the answer is %s", got)
			}
			if waited := db.before.Load() > 0; waited != c.waits {
				t.Errorf("it waited: %t", waited)
			}
			settle(t, s)
			if r := s.Report(); r.Total.Paid.Calls != 1 {
				t.Errorf("the ledger has %d calls", r.Total.Paid.Calls)
			}
		})
	}
}
