package mailbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// slowEnd answers the batch that settles a dispatch a second late.
type slowEnd struct{ store.Store }

func (s slowEnd) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	for i := range b.Put {
		if c := &b.Put[i]; c.Kind == "dispatch" && strings.Contains(string(c.Value), `"status":"acked"`) {
			time.Sleep(time.Second)
		}
	}
	return s.Store.Apply(ctx, b)
}

// TestWorkers holds that a worker that becomes free takes the next thread of a backlog at once, and not at the next poll, and while its
// last execution is settled; not more than one for each worker.
func TestWorkers(t *testing.T) {
	t.Parallel()
	const jobs = 20
	backlog := func(t *testing.T, s store.Store) *script {
		t.Helper()
		ran := &script{}
		m := open(t, mailbox.Config{Runtime: ran, Store: s, Poll: time.Hour, Limits: mailbox.Limits{Workers: 2}})
		for i := range jobs {
			background(t, m, request(fmt.Sprint("t", i), "x"))
		}
		must(t, m.Start(t.Context()))
		return ran
	}
	cases(t, map[string]func(*testing.T){
		"at once": func(t *testing.T) {
			ran := backlog(t, plain{memstore.New()})
			sleep(time.Millisecond)
			equal(t, "executions", len(ran.ran()), jobs)
		},
		"while another is settled": func(t *testing.T) {
			ran := backlog(t, plain{slowEnd{memstore.New()}})
			sleep(time.Millisecond)
			equal(t, "executions before the first is settled", len(ran.ran()), 4)
			sleep(jobs / 2 * time.Second)
			equal(t, "executions", len(ran.ran()), jobs)
		},
	})
}
