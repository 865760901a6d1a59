package mailbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// stale is a store whose next read, once it is armed, returns what was there a while ago.
type stale struct {
	store.Store

	armed atomic.Bool
	while func()
}

func (s *stale) Read(ctx context.Context, thread string, q store.Query) (store.Snapshot, error) {
	out, err := s.Store.Read(ctx, thread, q)
	if s.armed.Swap(false) {
		s.while()
	}
	return out, err
}

// TestAwait: who waits for an execution of this process need not poll, also when it ends while its dispatch is read.
func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &stale{Store: memstore.New(), while: func() {
			close(release)
			time.Sleep(time.Second)
		}}
		m := started(t, mailbox.Config{Store: s, Poll: time.Hour, Runtime: &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
			<-release
			return mailbox.Result{}, nil
		}}})
		sub := background(t, m, request("t", "x"))
		sleep(0)
		s.armed.Store(true)
		begin := time.Now()
		d, err := m.Await(t.Context(), sub.Dispatch)
		must(t, err)
		equal(t, "status", d.Status, mailbox.Acked)
		equal(t, "time", time.Since(begin), time.Second)
	})
}
